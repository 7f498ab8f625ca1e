package zqtest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// probeLimit bounds one question to a server that may be paused or loading.
const probeLimit = time.Second

// probe asks the server at addr whether it serves and which process it is.
// It speaks bare RESP: a go-redis client would retry, and log each refusal.
func probe(addr, password string) (pid int, err error) {
	conn, err := net.DialTimeout("tcp", addr, probeLimit)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(probeLimit)); err != nil {
		return 0, err
	}
	ask := asker{conn: conn, wire: newWire(conn)}
	if password != "" {
		ask.ask("AUTH", password)
	}
	if pong := ask.ask("PING"); ask.err == nil && pong[0] == '-' {
		return 0, fmt.Errorf("PING: %s", bytes.TrimSpace(pong)) // loading, most likely
	}
	info := ask.ask("INFO", "server")
	if ask.err != nil {
		return 0, ask.err
	}
	return parsePid(info)
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

func parsePid(info []byte) (int, error) {
	_, rest, found := bytes.Cut(info, []byte("process_id:"))
	if !found {
		return 0, errors.New("zqtest: INFO server names no process_id: " + string(info))
	}
	digits, _, _ := bytes.Cut(rest, []byte("\r\n"))
	return strconv.Atoi(string(digits))
}
