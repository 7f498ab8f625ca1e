// Package zqtest holds what a test of zqueue needs: a real redis-server for
// each test, an embedded Redis, a proxy that loses exactly the reply you name,
// child processes that can be killed half-way, and a [Recorder] that checks
// from a history whether order held.
//
// # Promise
//
//   - [Redis] and [Shared] give a server of the test's own on a free loopback
//     port, never 6379. It is stopped when the test ends; on Linux it dies with
//     the test process, however that ends. A missing redis-server fails the
//     test and says how to install it; nothing is ever skipped.
//   - [Proxy] understands the protocol: it drops, delays or holds whole
//     commands and whole replies, with pipelines, RESP2 and RESP3, and tells by
//     a channel when it has done so.
//   - [Child] runs a function of the test binary in a process of its own, to be
//     killed or paused for real.
//   - Every wait ends: with its signal, or as a failed test after a deadline
//     with a line that says what was awaited.
//
// # Not promised
//
//   - [Embedded] is miniredis. It differs from Redis in some twenty ways, is
//     slow on big sets, and proves nothing about Lua scripts. All is lost when
//     it closes.
//   - The proxy does not model latency or bandwidth, MONITOR, or CLIENT REPLY
//     OFF; a lost reply is lost to the client, the server has long acted.
//   - A server killed by [Server.Kill] loses no write that reached the kernel:
//     killing a process is not a power failure.
//   - Outside Linux a test process that is killed may leave a server behind.
//
// # Use
//
//	func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }
//
//	func TestMail(t *testing.T) {
//		t.Parallel()
//		rdb := zqtest.Shared(t).Client()
//		queue := zqtest.Queue(t)
//		…
//	}
//
//	func TestLostReply(t *testing.T) {
//		t.Parallel()
//		proxy := zqtest.Proxy(t, zqtest.Redis(t).Addr())
//		lost := proxy.DropReply(zqtest.Command("EVALSHA", script.Hash()), 1)
//		… // enqueue through proxy.Addr()
//		zqtest.Wait(t, lost.Done(), 5*time.Second)
//	}
package zqtest
