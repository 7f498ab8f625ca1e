package zqfx

import (
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"
)

// ModuleOption is a setting of an instance.
type ModuleOption interface{ applyModule(*module) }

// module is an instance as it was declared.
type module struct {
	instance     instance
	producerOnly bool // by code
	offByEnv     bool
	onFatal      *FatalPolicy // nil: as configured
	at           origin
}

// ProducerOption is a setting of an instance, or of one queue.
type ProducerOption interface {
	ModuleOption
	QueueOption
}

// ProducerOnly says that this process, or this process on this queue, sends and does not consume: handlers are not
// required, and those of a whole instance are not even constructed.
func ProducerOnly() ProducerOption { return producerOnly{} }

type producerOnly struct{}

func (producerOnly) applyModule(m *module)      { m.producerOnly = true }
func (producerOnly) applyQueue(q *queueOptions) { ConsumeHere(false).applyQueue(q) }

// consumeFault is set where the configuration asks for consumers that were left out before there was one.
func (m *module) consumeFault(c Config) error {
	if !m.offByEnv || m.producerOnly || c.Consume == nil || !*c.Consume {
		return nil
	}
	return fmt.Errorf("zqfx: configuration: %w", invalid("config.Consume", true,
		"nothing, or no "+m.instance.envPrefix()+"CONSUME=false in the environment: by that the handlers were left out"))
}

// Module is what every application with zqfx needs, once an instance. It provides Config, *Producers, *Health
// and, in a process that consumes, *Worker; and starts the consumers of all queues with handlers. See the
// package's documentation for where Redis comes from, and for what happens at the start and the stop.
func Module(opts ...ModuleOption) fx.Option {
	m := &module{at: callerOrigin()}
	for _, o := range opts {
		o.applyModule(m)
	}
	if err := m.instance.fault(); err != nil {
		return fx.Error(m.at.fault("Module()", err))
	}
	m.offByEnv = consumeOffByEnv(m.instance)
	name := "zqfx"
	if m.instance != "" {
		name += "." + string(m.instance)
	}
	parts := []fx.Option{
		fx.Provide(fx.Annotated{Name: string(m.instance), Target: func() *moduleOfInstance { return &moduleOfInstance{} }}),
		m.provideSurroundings(),
		m.provideParts(),
		fx.Invoke(func(*plan) {}), // what is declared wrong shows before anything is constructed
	}
	if !m.producerOnly && !m.offByEnv {
		parts = append(parts, m.provideWorker())
	}
	parts = append(parts, fx.Invoke(func(*stacks) {})) // producers get them and do not ask for them
	return fx.Module(name, parts...)
}

// moduleOfInstance is there where an instance has its Module. It is the first that Module provides: what fx says of
// a second one names it.
type moduleOfInstance struct{}

// provideSurroundings provides what an instance is built from: configuration, declarations, Redis, telemetry.
func (m *module) provideSurroundings() fx.Option {
	own := m.instance.nameTag()
	client := m.instance.clientTag() + ` optional:"true"`
	const optional = `optional:"true"`
	return fx.Options(
		fx.Provide(fx.Annotate(func() (Config, error) { return configFromEnv(m.instance) }, fx.ResultTags(own))),
		fx.Provide(fx.Private, fx.Annotate(
			func(c Config, q []queueDecl, h []*handlerDecl, ch []chainDecl) (*plan, error) {
				return newPlan(m, c, declared{q, h, ch})
			},
			fx.ParamTags(own, m.instance.groupTag(groupQueues), m.instance.groupTag(groupHandlers), m.instance.groupTag(groupChains)),
		)),
		fx.Provide(fx.Private, fx.Annotate(
			func(p *plan, u redis.UniversalClient, c *redis.Client, cl *redis.ClusterClient,
				u2 redis.UniversalClient, c2 *redis.Client, cl2 *redis.ClusterClient,
				lc fx.Lifecycle,
			) (*link, error) {
				if m.instance != "" {
					u2, c2, cl2 = nil, nil, nil // another instance's
				}
				l, err := newLink(m.instance, p.config, offers{u, c, cl}, offers{u2, c2, cl2})
				if err == nil && l.own {
					lc.Append(fx.StopHook(l.rdb.Close))
				}
				return l, err
			},
			fx.ParamTags("", client, client, client, optional, optional, optional),
		)),
		fx.Provide(fx.Private, fx.Annotate(
			func(log *slog.Logger, t trace.TracerProvider, mp metric.MeterProvider) surroundings {
				return newSurroundings(m.instance, log, t, mp)
			},
			fx.ParamTags(optional, optional, optional),
		)),
	)
}

// provideParts provides what an application may ask for in any process.
func (m *module) provideParts() fx.Option {
	own := m.instance.nameTag()
	return fx.Options(
		fx.Provide(fx.Private, func() *stacksToCome { return &stacksToCome{} }, newInspectors),
		fx.Provide(fx.Private, fx.Annotate(newStacks, fx.ParamTags("", "", "", "", "", "", m.instance.groupTag(groupLate)))),
		fx.Provide(fx.Annotate(newProducers, fx.ResultTags(own))),
		fx.Provide(fx.Annotate(
			func(lc fx.Lifecycle, p *plan, l *link) *Health { return newHealth(lc, m, p, l) }, fx.ResultTags(own))),
	)
}

// provideWorker provides the consumers and has them started.
func (m *module) provideWorker() fx.Option {
	own := m.instance.nameTag()
	return fx.Options(
		fx.Provide(fx.Annotate(
			func(lc fx.Lifecycle, sd fx.Shutdowner, p *plan, l *link, s surroundings, st *stacks, built []builtHandler,
				h *Health, _ *Producers, // closed after the consumers, therefore built before them
			) (*Worker, error) {
				w, err := newWorker(m, p, l, s, st, built)
				if err != nil {
					return nil, err
				}
				w.fatal.shutdowner, w.health = sd, h
				h.watch(w)
				lc.Append(fx.Hook{OnStart: guarded("start", w.start), OnStop: guarded("stop", w.stop)})
				return w, nil
			},
			fx.ParamTags("", "", "", "", "", "", m.instance.groupTag(groupBuilt), own, own), fx.ResultTags(own),
		)),
		fx.Invoke(fx.Annotate(func(*Worker) {}, fx.ParamTags(own))),
	)
}
