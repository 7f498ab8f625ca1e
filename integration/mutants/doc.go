// Package mutants proves the tests: each seeded bug in the scripts or in the code that settles must be found by the
// property tests within the time of a CI run.
//
//	go test -tags mutants ./integration/mutants
package mutants
