package zqtest

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// probeLimit bounds one question to a server that may be paused or loading.
const probeLimit = time.Second

// probe asks the server whether it serves and which process it is. It speaks
// bare RESP: a go-redis client would retry, and log each refusal.
func (in *instance) probe() (pid int, err error) {
	var info []byte
	err = in.talk(probeLimit, func(a *asker) {
		if pong := a.ask("PING"); a.err == nil && pong[0] == '-' {
			a.err = fmt.Errorf("PING: %s", bytes.TrimSpace(pong)) // loading, most likely
		}
		info = a.ask("INFO", "server")
	})
	if err != nil {
		return 0, err
	}
	return parsePid(info)
}

// talk opens a connection for a few questions and closes it. The first error
// of the asker is its own.
func (in *instance) talk(limit time.Duration, questions func(a *asker)) error {
	conn, err := in.dial(limit)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	a := &asker{conn: conn, wire: newWire(conn)}
	if in.password != "" {
		a.ask("AUTH", in.password)
	}
	questions(a)
	return a.err
}

func (in *instance) dial(limit time.Duration) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: limit}
	if in.tls == nil {
		return dialer.Dial("tcp", in.addr())
	}
	return tls.DialWithDialer(dialer, "tcp", in.addr(), in.tls.clientConfig())
}

// asker sends commands one at a time and keeps the first error.
type asker struct {
	conn net.Conn
	wire *wire
	err  error
}

func (a *asker) ask(words ...string) []byte {
	if a.err != nil {
		return nil
	}
	if _, a.err = a.conn.Write(encodeCommand(words...)); a.err != nil {
		return nil
	}
	var reply []byte
	reply, a.err = a.wire.reply()
	return reply
}

// do sends a command that has to be answered with something other than an
// error, and gives the words of the answer, however it is nested.
func (a *asker) do(words ...string) []string {
	reply := a.ask(words...)
	if a.err == nil && reply[0] == '-' {
		a.err = fmt.Errorf("%s: %s", strings.Join(words, " "), bytes.TrimSpace(reply[1:]))
	}
	return flatten(reply)
}

// flatten gives the words of a reply in RESP2: strings, numbers, and those of
// an array one after the other. A nil is an empty word.
func flatten(reply []byte) []string {
	var words []string
	for len(reply) > 0 {
		line, rest, _ := bytes.Cut(reply, []byte("\r\n"))
		kind, text := line[0], string(line[1:])
		reply = rest
		switch n, err := strconv.Atoi(text); {
		case kind == '*':
		case kind == '$' && err == nil && n >= 0 && n+2 <= len(rest):
			words, reply = append(words, string(rest[:n])), rest[n+2:]
		case kind == '$':
			words = append(words, "")
		default:
			words = append(words, text)
		}
	}
	return words
}

func parsePid(info []byte) (int, error) {
	_, rest, found := bytes.Cut(info, []byte("process_id:"))
	if !found {
		return 0, errors.New("zqtest: INFO server names no process_id: " + string(info))
	}
	digits, _, _ := bytes.Cut(rest, []byte("\r\n"))
	return strconv.Atoi(string(digits))
}
