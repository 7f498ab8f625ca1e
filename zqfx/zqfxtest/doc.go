// Package zqfxtest runs applications that use zqfx in tests: with a Redis of their own, one message at a time or
// all of them.
//
// # Promised
//
// New builds the application with an embedded Redis, or with the one given by WithRedis or ZQ_TEST_REDIS_URL, in
// place of the client or URL that it has otherwise. It starts nothing; WorkOne then runs one message through the
// real chain and handler, and RequireStart starts the consumers, whose work Drain waits for. Everything ends with
// the test.
//
// # Not promised
//
// The embedded Redis is miniredis: good for what your handlers do, no proof of order or durability; see zqtest.
//
// An application that itself provides a client with the name zq, or the name of an instance given to
// WithInstance, does not build here: there would be two. Replace yours with fx.Replace in a test of package
// fxtest.
//
// Nothing is removed from a real Redis, before or after. Give each test an empty database.
//
// # Use
//
// See the examples.
package zqfxtest
