package zqfx

import (
	"regexp"
	"strings"
)

// AnyOption fits wherever an instance can be named.
type AnyOption interface {
	ModuleOption
	QueueOption
	HandleOption
	ChainOption
	SenderOption
}

// Instance puts a declaration into the instance of that name instead of the default one: a second Redis, with
// its own Module, queues, handlers and chains. name is 1 to 64 of [A-Za-z0-9_-], and not "zq" or "test". Everything that
// an instance provides has its name as a tag: name:"billing" for Config, *Producers, *Health and senders,
// name:"billing.orders" for a queue's *zq.Producer and *zq.Inspector. Its environment variables begin with
// ZQ_BILLING_; names that differ by case or by - and _ alone share theirs.
func Instance(name string) AnyOption { return instanceOption(name) }

type instanceOption string

func (o instanceOption) applyModule(m *module)      { m.instance = instance(o) }
func (o instanceOption) applyQueue(q *queueOptions) { q.instance = instance(o) }
func (o instanceOption) applyHandle(h *handleConfig) {
	h.instance = instance(o)
}
func (o instanceOption) applyChain(c *chainConfig)   { c.instance = instance(o) }
func (o instanceOption) applySender(s *senderConfig) { s.instance = instance(o) }

// instance names what belongs together; the default one has no name.
type instance string

var instanceName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// fault is set for a name that could not stand in a tag, or that means something else.
func (i instance) fault() error {
	reserved := i == "zq" || strings.EqualFold(string(i), "test") // ZQ_TEST_REDIS_URL is package zqfxtest's
	if i == "" || !reserved && instanceName.MatchString(string(i)) {
		return nil
	}
	return invalid("instance", strings.ToValidUTF8(string(i), "?"), `1 to 64 of [A-Za-z0-9_-], not "zq" or "test"`)
}

// nameTag is the tag of what the instance provides once.
func (i instance) nameTag() string {
	if i == "" {
		return ""
	}
	return `name:"` + string(i) + `"`
}

// clientTag is the tag of the Redis client that the instance looks for first.
func (i instance) clientTag() string {
	if i == "" {
		return `name:"zq"`
	}
	return i.nameTag()
}

// queueName is the name of what the instance provides for a queue.
func (i instance) queueName(queue string) string {
	if i == "" {
		return queue
	}
	return string(i) + "." + queue
}

// group is the name of a value group of the instance.
func (i instance) group(what string) string {
	if i == "" {
		return "zqfx." + what
	}
	return "zqfx." + what + "." + string(i)
}

func (i instance) groupTag(what string) string { return `group:"` + i.group(what) + `"` }

// envPrefix is what the names of the instance's environment variables begin with: ZQ_, or ZQ_BILLING_.
func (i instance) envPrefix() string {
	if i == "" {
		return "ZQ_"
	}
	return "ZQ_" + strings.ToUpper(strings.ReplaceAll(string(i), "-", "_")) + "_"
}

// String is the instance as a message calls it.
func (i instance) String() string {
	if i == "" {
		return "the default instance"
	}
	return "instance " + string(i)
}
