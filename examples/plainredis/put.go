package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// put puts all mails into the queue: by redis-cli where there is one and a server that it can reach, else by the same
// command from here.
func put(ctx context.Context, s server, key string, out io.Writer) error {
	cli, err := exec.LookPath("redis-cli")
	byCLI := err == nil && s.options != nil
	if byCLI {
		fmt.Fprintln(out, "put in by redis-cli:")
	} else {
		fmt.Fprintln(out, "put in by go-redis (with -redis URL and a redis-cli on the PATH, by that):")
	}
	for _, m := range mails {
		fmt.Fprintf(out, "  ZADD %s %s %s\n", quoted(key), m.score, quoted(m.member))
		if byCLI {
			err = zaddByCLI(ctx, cli, s.options, key, m)
		} else {
			err = zadd(ctx, s.rdb, key, m)
		}
		if err != nil {
			return fmt.Errorf("put in %s: %w", m.member, err)
		}
	}
	return nil
}

// zadd sends the score as it is written: Redis reads it, not we.
func zadd(ctx context.Context, rdb *redis.Client, key string, m mail) error {
	return rdb.Do(ctx, "ZADD", key, m.score, m.member).Err()
}

func zaddByCLI(ctx context.Context, cli string, o *redis.Options, key string, m mail) error {
	cmd := exec.CommandContext(ctx, cli, append(cliFlags(o), "ZADD", key, m.score, m.member)...)
	cmd.Env = append(os.Environ(), "REDISCLI_AUTH="+o.Password) // on the command line anybody could read it
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("redis-cli: %w: %s", err, strings.TrimSpace(string(text)))
	}
	return nil
}

// cliFlags say to redis-cli what the URL said to go-redis. -e makes an error of Redis an exit status.
func cliFlags(o *redis.Options) []string {
	flags := []string{"-e", "-n", strconv.Itoa(o.DB)}
	if host, port, err := net.SplitHostPort(o.Addr); err == nil && o.Network != "unix" {
		flags = append(flags, "-h", host, "-p", port)
	} else {
		flags = append(flags, "-s", o.Addr)
	}
	if o.Username != "" {
		flags = append(flags, "--user", o.Username)
	}
	if o.TLSConfig != nil {
		flags = append(flags, "--tls")
	}
	return flags
}

// quoted writes a word as a shell takes it.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
