package zqfx

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zqueue/zqueue/middleware"
)

// plan is all that was declared for an instance, checked. It needs no handler and no Redis.
type plan struct {
	config  Config
	consume bool // whether this process works on queues at all
	queues  map[string]*queuePlan
}

// queuePlan is what was declared for a queue.
type queuePlan struct {
	name     string
	decl     queueDecl // with no origin if only handlers name the queue
	settings settings
	handlers []*handlerDecl // sorted
	chain    chainDecl
	consume  bool
}

// declared is what the groups of an instance hold, in no order.
type declared struct {
	queues   []queueDecl
	handlers []*handlerDecl
	chains   []chainDecl
}

// newPlan puts the declarations together, and lists all that is wrong with them.
func newPlan(m *module, c Config, d declared) (*plan, error) {
	p := &plan{config: c, queues: make(map[string]*queuePlan)}
	p.consume = !m.producerOnly && !m.offByEnv && c.consumes()
	faults := []error{m.consumeFault(c), c.Validate()}
	p.takeQueues(d.queues)
	faults = append(faults, p.takeHandlers(d.handlers)...)
	faults = append(faults, p.takeChains(d.chains)...)
	for _, name := range slices.Sorted(maps.Keys(c.Queues)) {
		if p.queues[name] == nil {
			faults = append(faults, fmt.Errorf("zqfx: configuration: %w",
				invalid("config.Queues", fmt.Sprintf("%q", name), "a queue that the code declares: "+p.names())))
		}
	}
	for _, q := range p.sorted() {
		q.settings = q.decl.over(c.Queues[q.name])
		q.consume = p.consume && q.settings.consumes() && len(q.handlers) > 0
		q.fitShutdown(c)
		faults = append(faults, p.check(q)...)
	}
	faults = append(faults, p.idle(m)...)
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("zqfx: %s cannot start:\n%w", m.instance, err)
	}
	return p, nil
}

// takeQueues merges declarations of a queue: one Queue, which fx keeps to, and any number of senders.
func (p *plan) takeQueues(decls []queueDecl) {
	slices.SortFunc(decls, func(a, b queueDecl) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.at, b.at)) })
	for _, d := range decls {
		q := p.queue(d.name)
		if d.named || q.decl.at == "" {
			q.decl = d
		}
	}
}

// takeHandlers gives each queue its handlers, in an order of their own: by kind, then by where they were
// declared. Two of one kind, aliases included, are a fault.
func (p *plan) takeHandlers(decls []*handlerDecl) []error {
	var faults []error
	slices.SortFunc(decls, func(a, b *handlerDecl) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), slices.Compare(a.names, b.names), cmp.Compare(a.at, b.at))
	})
	for _, d := range decls {
		q := p.queue(d.queue)
		if clash, name := q.clash(d); clash != nil {
			faults = append(faults, fmt.Errorf("zqfx: two handlers for %s in queue %q: %s at %s and %s at %s",
				name, d.queue, clash, clash.at, d, d.at))
		}
		q.handlers = append(q.handlers, d)
	}
	return faults
}

// clash finds a handler of the queue that would handle the same messages.
func (q *queuePlan) clash(d *handlerDecl) (with *handlerDecl, about string) {
	for _, other := range q.handlers {
		if other.raw() || d.raw() {
			return other, "all kinds"
		}
		for _, name := range d.names {
			if slices.Contains(other.names, name) {
				return other, fmt.Sprintf("kind %q", name)
			}
		}
	}
	return nil, ""
}

// takeChains gives each queue its chain.
func (p *plan) takeChains(decls []chainDecl) []error {
	var faults []error
	slices.SortFunc(decls, func(a, b chainDecl) int { return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.at, b.at)) })
	common := chainDecl{builder: middleware.Standard()}
	for i, d := range decls {
		if i > 0 && decls[i-1].queue == d.queue {
			faults = append(faults, fmt.Errorf("zqfx: two chains for the same queues: %s at %s and at %s", &d, decls[i-1].at, d.at))
		}
		switch q := p.queues[d.queue]; {
		case d.queue == "":
			common = d
		case q == nil:
			faults = append(faults, d.at.fault(d.String(), invalid("queue", fmt.Sprintf("%q", d.queue), "a declared queue: "+p.names())))
		default:
			q.chain = d
		}
	}
	for _, q := range p.queues {
		if q.chain.builder == nil {
			q.chain = common
		}
	}
	return faults
}

// check lists what is wrong with a queue as a whole.
func (p *plan) check(q *queuePlan) []error {
	var faults []error
	what := fmt.Sprintf("Queue(%q)", q.name)
	if err := q.settings.validate(); err != nil {
		if q.decl.named {
			err = q.decl.at.fault(what+" with its configuration", err)
		} else {
			err = fmt.Errorf("zqfx: queue %q by its configuration: %w", q.name, err)
		}
		faults = append(faults, err)
	}
	if q.decl.named && p.consume && q.settings.consumes() && len(q.handlers) == 0 {
		faults = append(faults, q.decl.at.fault(what,
			errors.New("it has no handler in a process that consumes: add Handle, or give it ProducerOnly()")))
	}
	return faults
}

// idle finds a process that means to consume and has nothing to.
func (p *plan) idle(m *module) []error {
	if !p.consume {
		return nil
	}
	for _, q := range p.queues {
		if len(q.handlers) > 0 || q.decl.named {
			return nil
		}
	}
	return []error{m.at.fault("Module()",
		errors.New("there are no handlers: add Handle or HandleFunc, or say Module(ProducerOnly()) or ZQ_CONSUME=false"))}
}

func (p *plan) queue(name string) *queuePlan {
	q := p.queues[name]
	if q == nil {
		q = &queuePlan{name: name, decl: queueDecl{name: name}}
		p.queues[name] = q
	}
	return q
}

func (p *plan) sorted() []*queuePlan {
	byName := func(a, b *queuePlan) int { return cmp.Compare(a.name, b.name) }
	return slices.SortedFunc(maps.Values(p.queues), byName)
}

// names lists the declared queues for a message.
func (p *plan) names() string {
	if len(p.queues) == 0 {
		return "there is none"
	}
	return strings.Join(slices.Sorted(maps.Keys(p.queues)), ", ")
}
