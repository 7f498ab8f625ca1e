package zqtest_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestTLSServerIsKnownByItsAuthorityAlone(t *testing.T) {
	t.Parallel()
	s := zqtest.Redis(t, zqtest.WithTLS(), zqtest.WithConfig("requirepass", "pw"))
	must(t, s.Client().Ping(t.Context()).Err())
	other := zqtest.Redis(t, zqtest.WithTLS())
	strange := s.Client(noRetry, func(o *redis.Options) { o.TLSConfig, o.DialerRetries = other.TLSConfig(), 1 })
	var unknown x509.UnknownAuthorityError
	if err := strange.Ping(t.Context()).Err(); !errors.As(err, &unknown) {
		t.Errorf("with another authority: %v", err)
	}
	plain := s.Client(noRetry, func(o *redis.Options) { o.TLSConfig = nil })
	if err := plain.Ping(t.Context()).Err(); err == nil {
		t.Error("it answers without TLS")
	}
	pool := x509.NewCertPool()
	if pem, err := os.ReadFile(s.CAFile()); err != nil || !pool.AppendCertsFromPEM(pem) {
		t.Errorf("the authority's file: %v", err)
	}
	opts, err := redis.ParseURL(s.URL())
	must(t, err)
	opts.TLSConfig.RootCAs = pool
	byURL := redis.NewClient(opts)
	t.Cleanup(func() { _ = byURL.Close() })
	must(t, byURL.Ping(t.Context()).Err())
}

func TestMutualTLSServerRefusesAClientWithoutCertificate(t *testing.T) {
	t.Parallel()
	s := zqtest.Redis(t, zqtest.WithMutualTLS())
	must(t, s.Client().Ping(t.Context()).Err())
	bare := s.Client(noRetry, func(o *redis.Options) {
		o.TLSConfig, o.DialerRetries = &tls.Config{RootCAs: s.TLSConfig().RootCAs, MinVersion: tls.VersionTLS12}, 1
	})
	if err := bare.Ping(t.Context()).Err(); err == nil {
		t.Error("it answers a client without certificate")
	}
	s.Restart()
	must(t, s.Client().Ping(t.Context()).Err())
	if zqtest.Shared(t).TLSConfig() != nil || zqtest.Shared(t).CAFile() != "" {
		t.Error("a server without TLS has a TLS config")
	}
}
