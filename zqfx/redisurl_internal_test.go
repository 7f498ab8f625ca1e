package zqfx

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// reach is where a URL leads, as its client's options say.
func reach(t target) string {
	switch o := t.single; {
	case o != nil:
		return fmt.Sprintf("single %s %s db %d user %s/%s tls %t ctx %t", o.Network, o.Addr, o.DB, o.Username, o.Password,
			o.TLSConfig != nil, o.ContextTimeoutEnabled)
	case t.sentinel != nil:
		o := t.sentinel
		return fmt.Sprintf("sentinel %s %q db %d user %s/%s sentinel %s/%s tls %t ctx %t", o.MasterName, o.SentinelAddrs, o.DB,
			o.Username, o.Password, o.SentinelUsername, o.SentinelPassword, o.TLSConfig != nil, o.ContextTimeoutEnabled)
	case t.cluster != nil:
		o := t.cluster
		return fmt.Sprintf("cluster %q user %s/%s tls %t ctx %t", o.Addrs, o.Username, o.Password, o.TLSConfig != nil,
			o.ContextTimeoutEnabled)
	}
	return "nowhere"
}

func TestRedisURLLeadsWhereItSays(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"redis://host":                     `single tcp host:6379 db 0 user / tls false ctx true`,
		"redis://user:p%40ss@host:7000/3":  `single tcp host:7000 db 3 user user/p@ss tls false ctx true`,
		"redis://:p@ss@host:7000?db=4":     `single tcp host:7000 db 4 user /p@ss tls false ctx true`,
		"redis://[::1]:7000/0":             `single tcp [::1]:7000 db 0 user / tls false ctx true`,
		"REDIS://host":                     `single tcp host:6379 db 0 user / tls false ctx true`,
		"rediss://:secret@host":            `single tcp host:6379 db 0 user /secret tls true ctx true`,
		"unix:///run/redis.sock?db=2":      `single unix /run/redis.sock db 2 user / tls false ctx true`,
		"unix://user:secret@/run/r.sock":   `single unix /run/r.sock db 0 user user/secret tls false ctx true`,
		"redis://h?read_timeout=3s":        `single tcp h:6379 db 0 user / tls false ctx true`,
		"redis+cluster://u:s@a?addr=b:2":   `cluster ["a:6379" "b:2"] user u/s tls false ctx true`,
		"rediss+cluster://a:1":             `cluster ["a:1"] user / tls true ctx true`,
		"redis+sentinel://a?master_name=m": `sentinel m ["a:26379"] db 0 user / sentinel / tls false ctx true`,
		"rediss+sentinel://:sp@a:1/2?master_name=m&addr=b:2&username=u&password=p": `sentinel m ["a:1" "b:2"] ` +
			`db 2 user u/p sentinel /sp tls true ctx true`,
		"redis+sentinel://[::1]?master_name=m": `sentinel m ["[::1]:26379"] db 0 user / sentinel / tls false ctx true`,
	}
	for raw, want := range cases {
		got, err := parseRedisURL(raw)
		if err != nil || reach(got) != want {
			t.Errorf("%s\n leads to %s (%v)\n    want %s", raw, reach(got), err, want)
		}
	}
}

// hostile are URLs that are none, with a password of hunter2 and what follows it in places where it may get to.
var hostile = []string{
	"hunter2", "://hunter2", ":hunter2@host", "hunter2@host:6379", "host:hunter2",
	"redis:hunter2", "redis:/hunter2@host", "redis://:hunter2", "redis://user:hunter2", "redis://:hunter2:host:6379",
	"redis://:hunter2#swordfish@host", "redis://:hunter2?swordfish@host", "redis://:hunter2/swordfish@host",
	"redis://:7/hunter2@host", "redis://:7?hunter2@host", "redis://:7#hunter2@host",
	"redis://host#hunter2", "redis://:hunter2%zz@host", "redis://:hunter2 swordfish@host", "redis://:hunter2\n@host",
	"redis://host?hunter2", "redis://host?hunter2=", "redis://host?%68unter2", "redis://host?password=hunter2;swordfish",
	"redis://host?addr=u:hunter2@b:1", "redis://host?addr=u%3Ahunter2%40b:1", "redis://host?max_retries=hunter2",
	"redis://host?max_retries=hunter2%0A%22", "redis://:hunter2@", "redis://:hunter2@:6379", "redis://:hunter2@/0",
	"redis://:hunter2@host/a/b", "redis://:hunter2@host/x", "redis://:hunter2@host?nonsense=1", "redis://:hunter2@host?db=x",
	"unix://:hunter2@", "unix://:hunter2@run/redis.sock", "unix:///run/:hunter2@redis.sock", "http://:hunter2@host",
	"redis+sentinel://:hunter2@host", "redis+sentinel://:hunter2@?master_name=m",
	"redis+sentinel://a?master_name=m&route_randomly=true&password=hunter2",
	"redis+sentinel://a?master_name=m&route_by_latency=true&password=hunter2",
	"redis+sentinel://a?master_name=m&replica_only=true&password=hunter2",
	"redis+cluster://:hunter2@a?read_only=true", "redis+cluster://:hunter2@a?route_randomly=true",
	"redis+cluster://:hunter2@a?route_by_latency=true", "redis+cluster://:hunter2@a?addr=nonsense",
	"redis+cluster://:hunter2@", "redis+nonsense://:hunter2@host", "unix+cluster://:hunter2@/host", "redis+://:hunter2@host",
	"rediss+sentinel+cluster://:hunter2@host?master_name=m", "host://hunter2", "red is://hunter2", "\x00hunter2",
}

func TestHostileRedisURLIsRefusedAndMasked(t *testing.T) {
	t.Parallel()
	for _, raw := range hostile {
		if got, err := parseRedisURL(raw); err == nil {
			t.Errorf("%q leads to %s", raw, reach(got))
		}
		unprinted(t, raw, "hunter2", "swordfish")
	}
}

func TestRedisURLIsMaskedAndStillOfUse(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"": "",
		"redis://user:secret@host:7000/3?client_name=shop&read_timeout=3s&max_retries=5": "redis://***@host:7000/3" +
			"?client_name=shop&read_timeout=3s&max_retries=***",
		"redis+sentinel://a?master_name=m&addr=b:2&password=p&username=u": "redis+sentinel://a?master_name=m&addr=b:2" +
			"&password=***&username=***",
		"unix:///run/redis.sock": "unix:///run/redis.sock",
		"redis://:a#b@host":      "redis://***",
		"secret":                 "***",
	}
	for raw, want := range cases {
		if got := maskURL(raw); got != want {
			t.Errorf("%s is masked as %s, want %s", raw, got, want)
		}
	}
}

// unprinted fails if a secret of the URL shows wherever a configuration with it, or an error about it, is printed.
func unprinted(t *testing.T, raw string, secrets ...string) {
	t.Helper()
	c := Config{RedisURL: raw}
	var text, json bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("config", "config", c, "pointer", &c)
	slog.New(slog.NewJSONHandler(&json, nil)).Info("config", "config", c, "pointer", &c)
	printed := map[string]string{
		"String": c.String(), "GoString": c.GoString(), "LogValue": fmt.Sprint(c.LogValue()), "slog text": text.String(),
		"slog JSON": json.String(), "the error of Validate": fmt.Sprintf("%v %+v", c.Validate(), c.Validate()),
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		printed[verb] = fmt.Sprintf(verb+" "+verb+" "+verb, c, &c, []any{struct{ C Config }{c}, map[string]Config{"c": c}})
	}
	if _, err := parseRedisURL(raw); err != nil {
		printed["the error"] = err.Error()
		_, err = newLink("", c, offers{}, offers{})
		printed["the module's error"] = err.Error()
	}
	for where, s := range printed {
		if slices.ContainsFunc(secrets, func(secret string) bool { return strings.Contains(s, secret) }) {
			t.Errorf("a secret of %q is printed by %s: %s", raw, where, s)
		}
	}
}

// Whatever stands in a password, raw or encoded, no part of it is printed.
func FuzzPasswordIsNeverPrinted(f *testing.F) {
	for _, middle := range []string{
		"", "@", "/", "?", "#", ":", "%", "%40", "@h:1/", "@h?addr=", "@h#", " ", "\n", "\x00", "[", "]", "\\", "&a=b", ";",
		"é", "://",
	} {
		f.Add("redis", "user", middle, "host:6379/0")
	}
	f.Add("redis+sentinel", "", "", "a?master_name=m")
	f.Add("rediss+cluster", "u", "@", "a?addr=b:1")
	f.Add("unix", "u", "/", "/run/redis.sock?db=x")
	f.Add("REDIS", "u", "?x=", "h/nonsense")
	f.Fuzz(func(t *testing.T, scheme, user, middle, rest string) {
		if strings.ContainsAny(scheme+user, "@?#/") || strings.Contains(user+rest, "hunter2") ||
			strings.Contains(user+rest, "swordfish") {
			return // not a URL with its password in one place
		}
		password := "hunter2" + middle + "swordfish"
		userinfo := url.QueryEscape(user) + ":"
		for _, raw := range []string{
			scheme + "://" + userinfo + password + "@" + rest,
			scheme + "://" + userinfo + url.QueryEscape(password) + "@" + rest,
			scheme + "://host?password=" + url.QueryEscape(password),
			scheme + "://host?max_retries=" + url.QueryEscape(password),
		} {
			unprinted(t, raw, "hunter2", "swordfish")
		}
	})
}
