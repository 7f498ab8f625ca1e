package zqtest

// ServerOption is a setting of a server that [Redis] starts. The interface is
// sealed: only this package makes one.
type ServerOption interface {
	applyServer(in *instance)
}

type serverOption func(in *instance)

func (o serverOption) applyServer(in *instance) { o(in) }

// WithConfig passes a setting of redis.conf to the server, as in
// WithConfig("maxmemory", "2mb") or
// WithConfig("client-output-buffer-limit", "normal", "0", "0", "0"). A later
// one beats an earlier one and this package's own. With "requirepass" the
// server's Options, URL and Client carry the password; port, bind and dir are
// this package's and should be left alone.
func WithConfig(name string, values ...string) ServerOption {
	return serverOption(func(in *instance) {
		in.config = append(in.config, append([]string{"--" + name}, values...))
		if name == "requirepass" && len(values) == 1 {
			in.password = values[0]
		}
	})
}

// WithAppendOnly keeps the data over [Server.Restart], also after
// [Server.Kill]: whatever the server acknowledged is there again. It writes
// the log without fsync, which a killed process needs no more than that.
func WithAppendOnly() ServerOption {
	return serverOption(func(in *instance) {
		in.config = append(in.config, []string{"--appendonly", "yes"}, []string{"--appendfsync", "no"})
	})
}
