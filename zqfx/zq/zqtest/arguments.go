package zqtest

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// args is the command line, of a server or of a Sentinel.
func (in *instance) args() []string {
	if in.sentinel != "" {
		return []string{in.confPath(), "--sentinel"}
	}
	port := strconv.Itoa(in.port)
	args := []string{
		"--bind", "127.0.0.1", "--dir", in.dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
	}
	if in.tls != nil {
		args = append(args, "--port", "0", "--tls-port", port)
		args = append(args, in.tls.args(in.dir)...)
	} else {
		args = append(args, "--port", port)
	}
	if in.bus {
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(in.busPort))
	}
	if host, port, err := net.SplitHostPort(in.master); err == nil {
		args = append(args, "--replicaof", host, port)
	}
	for _, setting := range in.config {
		args = append(args, setting...)
	}
	return args
}

// writeFiles writes what the server reads when it starts.
func (in *instance) writeFiles() error {
	if in.tls != nil {
		if err := in.tls.write(in.dir); err != nil {
			return err
		}
	}
	if in.sentinel == "" {
		return nil
	}
	if old, err := os.ReadFile(in.confPath()); err == nil && strings.Contains(string(old), "port "+strconv.Itoa(in.port)+"\n") {
		return nil // a restart: what the Sentinel knows stands there too
	}
	conf := "port " + strconv.Itoa(in.port) + "\nbind 127.0.0.1\ndir " + in.dir + "\n" + in.sentinel
	return os.WriteFile(in.confPath(), []byte(conf), 0o600)
}

func (in *instance) confPath() string { return filepath.Join(in.dir, "sentinel.conf") }
