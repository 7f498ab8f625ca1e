package zqfx_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// here is the line that calls it, as messages have it.
func here() string {
	_, file, line, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", file, line)
}

// warehouse is a dependency that nobody provides.
type warehouse struct{}

func needsWarehouse(*warehouse) func(context.Context, *zq.Delivery, OrderPlaced) error {
	return nothing
}

func cannotBeMade() (func(context.Context, *zq.Delivery, OrderPlaced) error, error) {
	return nil, errors.New("no stock")
}

func handlesText() func(context.Context, *zq.Delivery, string) error { return nil }

// Renamed is Placed under a new name; it still handles what has the old one.
var Renamed = zq.NewKind[OrderPlaced]("order.created", zq.WithAliases("order.placed"))

// refusal is what must not build, what is said about it, and the line that declares it.
type refusal struct {
	at, want string
	opts     []fx.Option
}

// Each case declares what is wrong on the line after its here().
func refusals() map[string]refusal {
	fine := zqfx.HandleFunc("orders", Placed, nothing)
	return map[string]refusal{
		"one kind twice": {next(here()), `two handlers for kind "order.placed" in queue "orders"`, []fx.Option{
			fine, zqfx.HandleFunc("orders", Placed, nothing)}},
		"an alias": {next(here()), `two handlers for kind "order.placed" in queue "orders"`, []fx.Option{
			fine, zqfx.HandleFunc("orders", Renamed, nothing)}},
		"raw beside typed": {next(here()), `two handlers for all kinds in queue "orders"`, []fx.Option{
			fine, zqfx.HandleRaw("orders", rawNothing)}},
		"raw twice": {next(here()), `two handlers for all kinds in queue "raw"`, []fx.Option{
			zqfx.HandleRaw("raw", rawNothing), zqfx.HandleRaw("raw", rawNothing)}},
		"no handler": {next(here()), "func() int, want a func(dependencies…) H", []fx.Option{
			zqfx.Handle("orders", Placed, func() int { return 1 })}},
		"handler of another kind": {next(here()), "zqfx_test.OrderPlaced) error", []fx.Option{
			zqfx.Handle("orders", Placed, handlesText)}},
		"method on the pointer": {next(here()), "(the method is *zqfx_test.keeper's)", []fx.Option{
			zqfx.Handle("orders", Placed, func() keeper { return keeper{} })}},
		"raw handler as typed": {next(here()), "rawNothing, a func() zq.HandlerFunc, want", []fx.Option{
			zqfx.Handle("orders", Placed, rawNothing)}},
		"typed handler as raw": {next(here()), "newKeeper, a func(*zqfx_test.repository) *zqfx_test.keeper, want", []fx.Option{
			zqfx.HandleRaw("orders", newKeeper)}},
		"two results": {next(here()), "want a func(dependencies…) H or (H, error)", []fx.Option{
			zqfx.HandleRaw("orders", func() (zq.HandlerFunc, int) { return nil, 1 })}},
		"no result": {next(here()), "a func(), want", []fx.Option{
			zqfx.HandleRaw("orders", func() {})}},
		"no function": {next(here()), "constructor is a *zqfx_test.keeper", []fx.Option{
			zqfx.Handle("orders", Placed, &keeper{})}},
		"annotated": {next(here()), "fx.In struct", []fx.Option{
			zqfx.Handle("orders", Placed, fx.Annotate(newKeeper))}},
		"nil constructor": {next(here()), "constructor is nil", []fx.Option{
			zqfx.Handle("orders", Placed, nil)}},
		"typed nil constructor": {next(here()), "constructor is nil", []fx.Option{
			zqfx.HandleRaw("orders", (func() zq.HandlerFunc)(nil))}},
		"nil function": {next(here()), "handler is nil", []fx.Option{
			zqfx.HandleFunc("orders", Placed, nil)}},
		"no kind": {next(here()), `Handle("orders", "")`, []fx.Option{
			zqfx.HandleFunc("orders", zq.NewKind[OrderPlaced](""), nothing)}},
		"bad queue": {next(here()), `Handle("or:ders", "order.placed")`, []fx.Option{
			zqfx.HandleFunc("or:ders", Placed, nothing)}},
		"bad queue with settings": {next(here()), `Queue("or:ders")`, []fx.Option{
			fine, zqfx.Queue("or:ders")}},
		"option out of range": {next(here()), "Lease is 1ns", []fx.Option{
			fine, zqfx.Queue("orders", zqfx.Lease(1))}},
		"options that contradict": {next(here()), "SkipKey", []fx.Option{
			fine, zqfx.Queue("orders", zqfx.Ordered(), zqfx.OnFailure(zq.SkipKey))}},
		"unknown policy": {next(here()), "unknown policy", []fx.Option{
			fine, zqfx.Queue("orders", zqfx.OnDeath(99))}},
		"queue without a handler": {next(here()), `Queue("mail")`, []fx.Option{
			fine, zqfx.Queue("mail")}},
		"nil chain": {next(here()), "chain is nil", []fx.Option{
			fine, zqfx.Chain(nil)}},
		"typed nil chain": {next(here()), "chain is nil", []fx.Option{
			fine, zqfx.Chain((*stubBuilder)(nil))}},
		"two chains": {next(here()), "two chains for the same queues", []fx.Option{
			fine, zqfx.Chain(zqfx.PlainChain(nil)), zqfx.Chain(zqfx.PlainChain(nil))}},
		"chain of an unknown": {next(here()), `"mial", want a declared queue: orders`, []fx.Option{
			fine, zqfx.Chain(zqfx.PlainChain(nil), zqfx.ForQueue("mial"))}},
		"sender of no kind": {next(here()), `Sender("mail", "")`, []fx.Option{
			fine, zqfx.Sender("mail", zq.NewKind[OrderPlaced](""))}},
		"sender to a bad queue": {next(here()), `Sender("ma il", "order.placed")`, []fx.Option{
			fine, zqfx.Sender("ma il", Placed)}},
		"sender with a bad name": {next(here()), "name is a\"b", []fx.Option{
			fine, zqfx.Sender("mail", Placed, zqfx.Named(`a"b`))}},
		"constructor gives nil": {next(here()), "constructor's result is nil", []fx.Option{
			zqfx.Handle("orders", Placed, func() *keeper { return nil })}},
		"chain that does not hold": {next(here()), "want deadletter outside retry", []fx.Option{
			fine, zqfx.Chain(badPlan())}},
		"nil in a plain chain": {next(here()), "chain[0] is nil", []fx.Option{
			fine, zqfx.Chain(zqfx.PlainChain(zq.Chain{nil}))}},
		"nil in a built chain": {next(here()), "nil middleware", []fx.Option{
			fine, zqfx.Chain(&stubBuilder{stack: middleware.Stack{Chain: zq.Chain{nil}}})}},
		"chain that is not built": {next(here()), "no bricks", []fx.Option{
			fine, zqfx.Chain(&stubBuilder{err: errors.New("no bricks")})}},
	}
}

// badPlan has deadletter inside retry, where exhausted errors never reach it.
func badPlan() middleware.Plan {
	return middleware.Ordered(middleware.Retry(), middleware.DeadLetter())
}

// stubBuilder is a chain of the application's own.
type stubBuilder struct {
	stack middleware.Stack
	err   error
}

func (b *stubBuilder) Build(middleware.Env) (middleware.Stack, error) { return b.stack, b.err }

func TestF16EachRefusalNamesTheLineThatDeclaredIt(t *testing.T) {
	t.Parallel()
	for name, r := range refusals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mentions(t, failed(t, append(r.opts, shared(t), zqfx.Module())...), r.want, r.at)
		})
	}
}

func TestF16WhatAConstructorSaysComesWithItsLineAndTheHandlers(t *testing.T) {
	t.Parallel()
	at := here()
	got := failed(t, shared(t), zqfx.Module(), zqfx.Handle("orders", Placed, cannotBeMade))
	mentions(t, got, "no stock", "cannotBeMade (", "zqfx handler of "+filepath.Base(next(at)))
}

// Both places are named, and all that is wrong is told at once.
func TestF16AllFaultsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	first := here()
	one := zqfx.HandleFunc("orders", Placed, nothing) // on the line after first
	second := here()
	two := zqfx.HandleFunc("orders", Placed, nothing)
	got := failed(t, shared(t), zqfx.Module(), one, two, zqfx.Queue("mail"),
		zqfx.Chain(zqfx.PlainChain(nil), zqfx.ForQueue("mial")),
		configured(func(c *zqfx.Config) {
			c.OnFatal, c.Queues = "explode", map[string]zqfx.QueueConfig{"odrers": {}}
		}))
	mentions(t, got, next(first), next(second), `Queue("mail")`, `"mial"`, "config.OnFatal",
		`"odrers", want a queue that the code declares`)

	got = failed(t, zqfx.Module(), zqfx.Queue("a", zqfx.Lease(1)), zqfx.Handle("a:b", Placed, 1), zqfx.Chain(nil),
		zqfx.Sender("", Placed))
	mentions(t, got, `Queue("a")`, `Handle("a:b"`, "Chain(…)", `Sender("", "order.placed")`)
}

// next is the line after a place.
func next(at string) string {
	i := strings.LastIndexByte(at, ':')
	n := 0
	if _, err := fmt.Sscan(at[i+1:], &n); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s:%d", at[:i], n+1)
}

func TestF17ValidateAppFindsAMissingDependencyWithoutRedis(t *testing.T) {
	t.Setenv("ZQ_REDIS_URL", "redis://192.0.2.1:6379") // an address that leads nowhere
	opts := []fx.Option{fx.NopLogger, zqfx.Module(), zqfx.Queue("orders", zqfx.Ordered()), zqfx.Sender("orders", Placed)}
	err := fx.ValidateApp(append(opts, zqfx.Handle("orders", Placed, needsWarehouse))...)
	if err == nil {
		t.Fatal("valid without a warehouse")
	}
	mentions(t, err.Error(), "missing type", "*zqfx_test.warehouse", "needsWarehouse (", "validate_test.go:")
	made := 0
	provided := fx.Provide(func() *warehouse { made++; return &warehouse{} })
	if err := fx.ValidateApp(append(opts, provided, zqfx.Handle("orders", Placed, needsWarehouse))...); err != nil {
		t.Errorf("with a warehouse: %v", err)
	}
	if made != 0 {
		t.Error("a constructor was called")
	}
	if err := fx.ValidateApp(append(opts, provided, zqfx.Chain(badPlan()))...); err == nil {
		t.Error("valid with a chain whose order does not hold")
	}
	err = fx.ValidateApp(append(opts, zqfx.Handle("orders", Placed, func() int { return 1 }))...)
	if err == nil {
		t.Fatal("valid with a constructor of numbers")
	}
	mentions(t, err.Error(), "validate_test.go:", "func() int")
}
