package zqfx

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
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

var urlSchemes = []string{
	"redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster",
}

func badURL(raw string) error {
	return invalid("redis url", maskURL(raw), "a URL of scheme "+strings.Join(urlSchemes, ", ")+", its password percent-encoded")
}

// parseRedisURL reads a URL by its scheme. No error of it holds a secret.
func parseRedisURL(raw string) (target, error) {
	u, err := url.Parse(raw)
	if err != nil || suspicious(u) || !slices.Contains(urlSchemes, u.Scheme) {
		// What the parser says may quote a part of the password.
		return target{}, badURL(raw)
	}
	var t target
	plain, form, _ := strings.Cut(u.Scheme, "+")
	switch {
	case plain != "unix" && u.Hostname() == "":
		// go-redis would take localhost.
		return target{}, invalid("redis url", maskURL(raw), "a host in it; there is no default")
	case plain == "unix" && u.Host != "":
		return target{}, invalid("redis url", maskURL(raw), "unix:///path/of/socket, with three slashes")
	case form == "sentinel":
		t.sentinel, err = parseSentinelURL(*u, plain)
	case form == "cluster":
		t.cluster, err = parseClusterURL(*u, plain)
	default:
		t.single, err = redis.ParseURL(raw)
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

func parseClusterURL(u url.URL, scheme string) (*redis.ClusterOptions, error) {
	u.Scheme = scheme
	o, err := redis.ParseClusterURL(u.String())
	switch {
	case err != nil:
		return nil, err
	case o.RouteByLatency || o.RouteRandomly || o.ReadOnly:
		return nil, errors.New("route_by_latency, route_randomly and read_only read from replicas, which are behind")
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
// known to be harmless. Of what is no proper URL of Redis only the scheme is left.
func maskURL(raw string) string {
	if raw == "" {
		return ""
	}
	u, err := url.Parse(raw)
	if err != nil || suspicious(u) || !slices.Contains(urlSchemes, u.Scheme) {
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
	name, value, _ := strings.Cut(pair, "=")
	switch {
	case value == "":
		return hidden // the name of nothing may be a value
	case harmless(name):
		return pair
	}
	return name + "=" + hidden
}

// suspicious finds URLs whose password may stand in a part where passwords do not: it holds a character that ended
// the part it belongs to, or something is missing in front of it or behind. Parameters that go-redis would leave
// out without a word are refused with them.
func suspicious(u *url.URL) bool {
	query, _ := url.QueryUnescape(u.RawQuery) // what is wrong with it the next line tells
	_, err := url.ParseQuery(u.RawQuery)
	return err != nil || u.Scheme == "" || u.Opaque != "" || u.Fragment != "" ||
		strings.Contains(u.Path+u.Host+query, "@") || strings.Count(u.Host, ":") > 1 && u.Host[0] != '['
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
		if harmless(name) {
			continue
		}
		if all = append(all, values...); strings.Join(values, "") == "" {
			all = append(all, name) // the name of nothing may be a value
		}
	}
	return all
}

// without gives the text, or that there is one if it holds a secret.
func without(text string, secrets []string) string {
	for _, s := range secrets {
		quoted := strconv.Quote(s)
		if s != "" && (strings.Contains(text, s) || strings.Contains(text, quoted[1:len(quoted)-1])) {
			return "it names a part of the URL that may be secret"
		}
	}
	return text
}
