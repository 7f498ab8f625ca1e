//go:build !unix

package zqtest

import "os"

// Nil: process.signal refuses them with an error. Only Kill works here.
var sigTerm, sigStop, sigCont os.Signal
