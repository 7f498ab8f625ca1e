// Package zqfx wires queues of package zq into fx applications: clients, producers, consumers, handlers with their
// dependencies, configuration, start, drain and health. It is wiring only; what a queue promises is package zq's.
//
//	fx.New(
//		zqfx.Module(),
//		zqfx.Queue("orders", zqfx.Ordered(), zqfx.Concurrency(16), zqfx.MaxAttempts(8)),
//		zqfx.Handle("orders", Placed, NewPlacedHandler), // a constructor with any dependencies
//		zqfx.HandleFunc("mail", SendMail, sendMail),
//		zqfx.Chain(middleware.Standard()),
//	).Run()
//
// # Promised
//
// What is declared wrong is an error of the application before anything starts, all faults at once, each with the
// line that declared it: a constructor that gives no handler, two handlers of a kind, settings out of range, a
// setting that breaks an Ordered queue, a queue in the configuration that nobody declares, two chains for a queue.
//
// The client comes from the graph, or from a URL; there is no other default. The graph's client named zq comes
// before one without a name, and may be a redis.UniversalClient, a *redis.Client or a *redis.ClusterClient. Then
// comes the URL. Constructors do no I/O, so fx.ValidateApp works without Redis.
//
// The start returns when each consumer has checked its server and queue; consumers outlive the start's context. A
// start that fails leaves nothing running.
//
// At the stop all consumers drain at once: no more is claimed, handlers may finish, then their contexts end, and
// what is left is given back. What handlers depend on through their constructors is closed after that, then the
// producers, then the client if it was made here. The drain takes Config.ShutdownTimeout at most, and leaves
// Config.ShutdownReserve of the deadline that fx gives to the hooks of others, even if a handler ignores its
// context or Redis is gone.
//
// A consumer that ends by itself is not a silent one: see OnFatal.
//
// # Not promised
//
// The default shutdown of 12 s fits into fx's default deadline of 15 s. Who raises one should raise the other
// (fx.StopTimeout): fx's bounds all hooks together, and hooks that stop before the consumers use it up as well.
// A deadline that leaves less than Config.ShutdownTimeout cuts handlers off without their Grace; their
// messages run again.
//
// fx.App.Run hears signals once the start is over. One that comes before ends the process without a drain; what it
// held runs again when its lease is over. Who calls app.Done before app.Run has it heard.
//
// A handler that never returns keeps its goroutine after the stop, and the stop says so in an error.
//
// Only a dependency by constructor outlives the drain. What a handler reaches through a global, or through
// something registered by hand in an fx.Invoke after the consumers were built, may be closed under it.
//
// The library does not set fx.WithLogger, and logs to the *slog.Logger in the graph or to slog.Default. Telemetry
// goes to the graph's trace.TracerProvider and metric.MeterProvider, or to the global ones.
//
// # Configuration
//
// An option in code comes before Config, and Config is what the environment says unless it is changed. For an
// instance named billing the prefix is ZQ_BILLING_.
//
//	ZQ_REDIS_URL         redis://user:password@host:6379/0, rediss://…, unix://…,
//	                     redis+sentinel://host:26379?master_name=mymaster&addr=host2:26379,
//	                     redis+cluster://host:6379?addr=host2:6379; parameters as in go-redis
//	ZQ_CONSUME           false: this process only produces, and its handlers are not constructed
//	ZQ_QUEUES            orders:16,mail:64 sets the concurrency of declared queues
//	ZQ_SHUTDOWN_TIMEOUT  12s unless set
//	ZQ_SHUTDOWN_RESERVE  a fifth of fx's deadline unless set
//	ZQ_ON_FATAL          shutdown (default) or degrade
//
// Module always provides a Config, so fx.Decorate changes it and fx.Replace puts one from a file in its place. Use
// them beside Module, not in a module of your own: fx keeps decorations inside the module that has them.
//
// A URL's secrets are masked wherever it is printed, errors included.
//
// # Exit code
//
// An application whose consumer ended by itself exits with ExitFatal, 70, under fx.App.Run. A main of its own
// finds the code in the signal of fx.App.Wait.
//
// # More than one Redis
//
// Instance("billing"), given to Module, Queue, Handle, Chain and Sender, makes a second world with its own client
// (name:"billing"), configuration and queues. See the examples.
package zqfx
