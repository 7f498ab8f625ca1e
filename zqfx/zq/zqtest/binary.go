package zqtest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// serverEnv names the variable with the path of the redis-server to use.
const serverEnv = "ZQ_REDIS_SERVER"

// minMajor is the first Redis with ZMPOP, which zqueue is built on.
const minMajor = 7

// findServer gives the path of a redis-server that is new enough, or an error
// that tells what to do.
func findServer() (string, error) {
	name := os.Getenv(serverEnv)
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("zqtest: this test needs a real redis-server: %w\n"+
			"\tDebian, Ubuntu: apt-get install redis-server\n"+
			"\tmacOS:          brew install redis\n"+
			"\tor set %s to the path of one", err, serverEnv)
	}
	return path, checkVersion(path)
}

var versionPattern = regexp.MustCompile(`server v=((\d+)\.\S+)`)

// checkVersion reads "Redis server v=7.0.15 sha=…"; Valkey says the like.
func checkVersion(path string) error {
	out, err := exec.Command(path, "--version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("zqtest: %s --version: %w: %s", path, err, out)
	}
	found := versionPattern.FindSubmatch(out)
	if found == nil {
		return fmt.Errorf("zqtest: %s is no redis-server: --version says %q", path, out)
	}
	if major, err := strconv.Atoi(string(found[2])); err != nil || major < minMajor {
		return fmt.Errorf("zqtest: %s is version %s; zqueue needs Redis %d.0 or newer (for ZMPOP); "+
			"set %s to the path of a newer one", path, found[1], minMajor, serverEnv)
	}
	return nil
}
