package script

import "os"

// FromDir assembles the scripts from a directory that has lua/, with another clock: for mutants, which must not need
// a build each.
func FromDir(dir, clock string) *Set {
	return assemble(os.DirFS(dir), map[string]string{"clock": clock})
}
