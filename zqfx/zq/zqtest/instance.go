package zqtest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
)

// errPortTaken means that another process was quicker to bind the port.
var errPortTaken = errors.New("zqtest: another process took the port")

// instance is one redis-server: where it lives and, while it runs, its
// process. It knows nothing of tests, so that one can serve a whole package.
// It is safe for concurrent use.
type instance struct {
	bin, dir string
	config   [][]string
	password string
	bus      bool      // a node of a cluster, with a second port
	sentinel string    // what a Sentinel watches, in its own words
	tls      *identity // nil: no TLS
	fault    error     // of an option

	mu      sync.Mutex
	port    int    // 0 until the first start, then fixed
	busPort int    // likewise
	master  string // host:port of whom it starts as a replica of; "" for none
	proc    *process
}

func newInstance(dir string, opts []ServerOption) (*instance, error) {
	bin, err := findServer()
	if err != nil {
		return nil, err
	}
	in := &instance{bin: bin, dir: dir}
	for _, opt := range opts {
		opt.applyServer(in)
	}
	return in, in.fault
}

// start brings the server up and returns when it answers. The first start
// finds a free port, later ones keep it.
func (in *instance) start() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.proc != nil && in.proc.alive() {
		return errors.New("zqtest: the server runs already")
	}
	var err error
	fixed := in.port != 0
	up := poll(patience, func() bool {
		if !fixed {
			if err = in.findPorts(); err != nil {
				return false
			}
		}
		err = in.launch()
		return !errors.Is(err, errPortTaken)
	})
	if !up || err != nil {
		return fmt.Errorf("zqtest: start %s: %w", in.bin, err)
	}
	return nil
}

func (in *instance) findPorts() (err error) {
	if in.port, err = freePort(); err != nil || !in.bus {
		return err
	}
	in.busPort, err = freePort()
	return err
}

// launch starts the process once on the chosen port and waits for an answer.
func (in *instance) launch() error {
	if err := in.writeFiles(); err != nil {
		return err
	}
	log, err := os.OpenFile(in.logPath(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own handle
	cmd := exec.Command(in.bin, in.args()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = in.dir, log, log
	if in.proc, err = startProcess(cmd); err != nil {
		return err
	}
	return in.awaitAnswer()
}

// awaitAnswer polls until the server answers for itself: with its own pid,
// not merely somebody on that port.
func (in *instance) awaitAnswer() error {
	var (
		pid int
		err error
	)
	answered := poll(patience, func() bool {
		if !in.proc.alive() {
			return true
		}
		pid, err = in.probe()
		return err == nil
	})
	switch {
	case !in.proc.alive():
		return in.exitError()
	case !answered:
		return errors.Join(fmt.Errorf("no answer within %v: %w%s", patience, err, in.logTail()), in.proc.kill())
	case pid != in.proc.pid():
		err := fmt.Errorf("%w: process %d answers on %s, not %d (a wrapper script must exec the server)",
			errPortTaken, pid, in.addr(), in.proc.pid())
		return errors.Join(err, in.proc.kill())
	}
	return nil
}

func (in *instance) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(in.port)) }

func (in *instance) logPath() string { return filepath.Join(in.dir, "redis-server.log") }

// exitError explains a server that ended while it was awaited.
func (in *instance) exitError() error {
	tail := in.logTail()
	if bytes.Contains([]byte(tail), []byte("Address already in use")) {
		return fmt.Errorf("%w %d%s", errPortTaken, in.port, tail)
	}
	return fmt.Errorf("it exited with code %d%s", in.proc.exitCode(), tail)
}

// logTail is the end of the server's log, to stand at the end of an error.
func (in *instance) logTail() string {
	const most = 2000
	log, err := os.ReadFile(in.logPath())
	if err != nil || len(log) == 0 {
		return ""
	}
	return "; its log ends:\n" + string(log[max(0, len(log)-most):])
}

// with runs f on the running process.
func (in *instance) with(f func(p *process) error) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.proc == nil || !in.proc.alive() {
		return errors.New("zqtest: the server is not running")
	}
	return f(in.proc)
}

// shutDown stops the server if it runs.
func (in *instance) shutDown() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.proc == nil || !in.proc.alive() {
		return nil
	}
	return in.proc.terminate(patience / 4)
}

// follow makes it a replica, or with "" a master, from its next start on.
func (in *instance) follow(master string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.master = master
}

// killDown ends the server at once if it runs, paused or not.
func (in *instance) killDown() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.proc == nil || !in.proc.alive() {
		return nil
	}
	return in.proc.kill()
}

// running tells whether there is a process, paused or not.
func (in *instance) running() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.proc != nil && in.proc.alive()
}

// freePort asks the kernel for a port that is free now; start copes with
// another process taking it in between. 6379 is left to whoever has data there.
func freePort() (int, error) {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("zqtest: no free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("zqtest: free port: %w", err)
		}
		if port != 6379 {
			return port, nil
		}
	}
}
