package zqfx

import (
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// target is what a Redis URL means; one of the three is set.
type target struct {
	single   *redis.Options
	sentinel *redis.FailoverOptions
	cluster  *redis.ClusterOptions
}

// open makes the client. It does no I/O.
func (t target) open() redis.UniversalClient {
	switch {
	case t.sentinel != nil:
		return redis.NewFailoverClient(t.sentinel)
	case t.cluster != nil:
		return redis.NewClusterClient(t.cluster)
	}
	return redis.NewClient(t.single)
}

const urlSchemes = "a URL of scheme redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster or " +
	"rediss+cluster, its password percent-encoded"

// parseRedisURL reads a URL by its scheme. No error of it holds a secret.
func parseRedisURL(raw string) (target, error) {
	u, err := url.Parse(raw)
	if err != nil || suspicious(u) {
		// What the parser says may quote a part of the password.
		return target{}, invalid("redis url", maskURL(raw), urlSchemes)
	}
	var t target
	plain, form, _ := strings.Cut(u.Scheme, "+")
	switch {
	case form == "" && (plain == "redis" || plain == "rediss" || plain == "unix"):
		t.single, err = redis.ParseURL(raw)
	case form == "sentinel" && (plain == "redis" || plain == "rediss"):
		t.sentinel, err = parseSentinelURL(*u, plain)
	case form == "cluster" && (plain == "redis" || plain == "rediss"):
		c := *u
		c.Scheme = plain
		t.cluster, err = redis.ParseClusterURL(c.String())
	default:
		return target{}, invalid("redis url", maskURL(raw), urlSchemes)
	}
	if err != nil {
		return target{}, invalid("redis url", maskURL(raw), "what go-redis takes: "+without(err.Error(), secretsOf(u)))
	}
	t.obeyContexts()
	return t, nil
}

// parseSentinelURL reads a Sentinel URL, whose port is 26379 unless given.
func parseSentinelURL(u url.URL, scheme string) (*redis.FailoverOptions, error) {
	u.Scheme = scheme
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), "26379")
	}
	o, err := redis.ParseFailoverURL(u.String())
	switch {
	case err != nil:
		return nil, err
	case o.MasterName == "":
		return nil, errors.New("master_name is missing")
	case o.RouteByLatency || o.RouteRandomly || o.ReplicaOnly:
		return nil, errors.New("route_by_latency, route_randomly and replica_only read from replicas, which are behind")
	}
	return o, nil
}

// obeyContexts makes deadlines of contexts count, which go-redis ignores by default.
func (t target) obeyContexts() {
	switch {
	case t.single != nil:
		t.single.ContextTimeoutEnabled = true
	case t.sentinel != nil:
		t.sentinel.ContextTimeoutEnabled = true
	case t.cluster != nil:
		t.cluster.ContextTimeoutEnabled = true
	}
}

const hidden = "***"

// maskURL is the URL without what could be a secret: user, password, and the values of parameters that are not
// known to be harmless. Of what is no proper URL only the scheme is left.
func maskURL(raw string) string {
	if raw == "" {
		return ""
	}
	u, err := url.Parse(raw)
	if err != nil || suspicious(u) {
		scheme, _, ok := strings.Cut(raw, "://")
		if !ok || strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz+") != "" {
			return hidden
		}
		return scheme + "://" + hidden
	}
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.User != nil {
		b.WriteString(hidden + "@")
	}
	b.WriteString(u.Host + u.EscapedPath())
	separator := "?"
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		if pair == "" {
			continue
		}
		b.WriteString(separator + maskParameter(pair))
		separator = "&"
	}
	return b.String()
}

func maskParameter(pair string) string {
	name, _, named := strings.Cut(pair, "=")
	switch {
	case !named:
		return hidden
	case harmless(name):
		return pair
	}
	return name + "=" + hidden
}

// suspicious finds URLs whose password holds a character that ended the part it belongs to.
func suspicious(u *url.URL) bool {
	return u.Opaque != "" || u.Fragment != "" || strings.Contains(u.Path+u.Host, "@") || strings.Contains(u.RawQuery, "@")
}

func harmless(parameter string) bool {
	switch parameter {
	case "addr", "master_name", "db", "protocol", "pool_size", "client_name":
		return true
	}
	return strings.HasSuffix(parameter, "_timeout")
}

// secretsOf are the parts of a URL that maskURL hides.
func secretsOf(u *url.URL) []string {
	var all []string
	if u.User != nil {
		password, _ := u.User.Password()
		all = append(all, u.User.Username(), password, u.User.String())
	}
	for name, values := range u.Query() {
		if !harmless(name) {
			all = append(all, values...)
		}
	}
	return all
}

// without gives the text unless it holds a secret.
func without(text string, secrets []string) string {
	for _, s := range secrets {
		if s != "" && strings.Contains(text, s) {
			return "something else"
		}
	}
	return text
}
