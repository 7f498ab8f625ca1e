// Package effect names what a handler can do to Redis in the same atomic step as its ack: a small set of
// literal verbs on keys of the queue's own namespace, and preconditions.
//
// All checks of a list come before its first write: types, integers and their range, preconditions. If one
// does not hold, nothing of the list and nothing of the ack happens. A key's type must fit as things stand
// before the list; a list does not see its own writes, so IncrBy stands at most once for one number, and not
// beside another verb on the same key that could change it.
//
// Not promised: anything about keys outside the queue's namespace, or on another partition.
package effect

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxName is the most bytes of an effect key's name; MaxList the most effects in one list, MaxArgs the most
// arguments of one.
const (
	MaxName = 512
	MaxList = 1000
	MaxArgs = 1000
)

// Effect is one verb or precondition on one key. Build it with the functions of this package; the zero value
// is invalid.
type Effect struct {
	name, verb string
	args       []string
	fault      string
}

// Name is the key's name within the queue's namespace.
func (e Effect) Name() string { return e.name }

// Verb is the operation's name on the wire.
func (e Effect) Verb() string { return e.verb }

// Args are the operation's arguments as Redis takes them.
func (e Effect) Args() []string { return e.args }

func (e Effect) String() string { return e.verb + " " + e.name }

// Set writes a string.
func Set(name, value string) Effect { return Effect{name: name, verb: "set", args: []string{value}} }

// Del removes a key of any type.
func Del(name string) Effect { return Effect{name: name, verb: "del"} }

// Expire ends a key's life after d, at least a millisecond.
func Expire(name string, d time.Duration) Effect {
	e := Effect{name: name, verb: "pexpire", args: []string{strconv.FormatInt(d.Milliseconds(), 10)}}
	if d < time.Millisecond {
		e.fault = fmt.Sprintf("a life of %s, want 1ms or more", d)
	}
	return e
}

// IncrBy adds to an integer; it and the sum must stay within ±(2^53−1).
func IncrBy(name string, n int64) Effect {
	return Effect{name: name, verb: "incrby", args: []string{strconv.FormatInt(n, 10)}, fault: rangeFault(n)}
}

// HSet writes one field of a hash.
func HSet(name, field, value string) Effect {
	return Effect{name: name, verb: "hset", args: []string{field, value}}
}

// HDel removes fields of a hash.
func HDel(name string, fields ...string) Effect {
	return Effect{name: name, verb: "hdel", args: fields, fault: someFault(fields)}
}

// HIncrBy adds to an integer field of a hash; it and the sum must stay within ±(2^53−1).
func HIncrBy(name, field string, n int64) Effect {
	return Effect{name: name, verb: "hincrby", args: []string{field, strconv.FormatInt(n, 10)}, fault: rangeFault(n)}
}

// SAdd adds members to a set.
func SAdd(name string, members ...string) Effect {
	return Effect{name: name, verb: "sadd", args: members, fault: someFault(members)}
}

// SRem removes members of a set.
func SRem(name string, members ...string) Effect {
	return Effect{name: name, verb: "srem", args: members, fault: someFault(members)}
}

// ZAdd adds a member to a sorted set, or changes its score.
func ZAdd(name string, score float64, member string) Effect {
	e := Effect{name: name, verb: "zadd", args: []string{strconv.FormatFloat(score, 'g', 17, 64), member}}
	if math.IsNaN(score) || math.IsInf(score, 0) {
		e.fault = "a score that is not a finite number"
	}
	return e
}

// ZRem removes members of a sorted set.
func ZRem(name string, members ...string) Effect {
	return Effect{name: name, verb: "zrem", args: members, fault: someFault(members)}
}

// RPush appends values to a list.
func RPush(name string, values ...string) Effect {
	return Effect{name: name, verb: "rpush", args: values, fault: someFault(values)}
}

// LTrim keeps the part of a list from start to stop, as Redis counts.
func LTrim(name string, start, stop int64) Effect {
	return Effect{name: name, verb: "ltrim", args: []string{strconv.FormatInt(start, 10), strconv.FormatInt(stop, 10)}}
}

// IfAbsent holds while there is no such key.
func IfAbsent(name string) Effect { return Effect{name: name, verb: "absent"} }

// IfExists holds while there is such a key, of any type.
func IfExists(name string) Effect { return Effect{name: name, verb: "exists"} }

// IfEquals holds while a string has this value.
func IfEquals(name, value string) Effect {
	return Effect{name: name, verb: "equals", args: []string{value}}
}

// IfField holds while a field of a hash has this value.
func IfField(name, field, value string) Effect {
	return Effect{name: name, verb: "hequals", args: []string{field, value}}
}

// IfNoField holds while a hash lacks a field, or is not there.
func IfNoField(name, field string) Effect {
	return Effect{name: name, verb: "habsent", args: []string{field}}
}

// IfLength holds while a list has n items; 0 for one that is not there.
func IfLength(name string, n int64) Effect {
	return Effect{name: name, verb: "length", args: []string{strconv.FormatInt(n, 10)}}
}

const limit = int64(1)<<53 - 1

func rangeFault(n int64) string {
	if n > limit || n < -limit {
		return fmt.Sprintf("an amount of %d, want within ±%d", n, limit)
	}
	return ""
}

func someFault(args []string) string {
	if len(args) == 0 || len(args) > MaxArgs {
		return fmt.Sprintf("%d arguments, want 1 to %d", len(args), MaxArgs)
	}
	return ""
}

// Fault says what is wrong with e by itself, "" if nothing.
func (e Effect) Fault() string {
	switch {
	case e.verb == "":
		return "empty"
	case e.name == "" || len(e.name) > MaxName || strings.IndexByte(e.name, 0) >= 0:
		return fmt.Sprintf("on a name of %d bytes, want 1 to %d without NUL", len(e.name), MaxName)
	}
	return e.fault
}

// ListFault says what is wrong with a list taken together, "" if nothing: a number that is added to must be
// left alone by the rest of the list, since checks do not see the list's own writes.
func ListFault(list []Effect) string {
	if len(list) > MaxList {
		return fmt.Sprintf("%d of them, want at most %d", len(list), MaxList)
	}
	kinds := map[string]string{}
	sums := map[string]bool{}
	writes := map[string]int{}
	for _, e := range list {
		kind, write := kindOf[e.verb], !precondition[e.verb] && e.verb != "pexpire"
		if have := kinds[e.name]; kind != "" && have != "" && have != kind {
			return fmt.Sprintf("%q used as %s and as %s", e.name, have, kind)
		}
		if kind != "" {
			kinds[e.name] = kind
		}
		if write {
			writes[e.name]++
		}
		if e.verb == "incrby" || e.verb == "hincrby" {
			sums[e.name] = true
		}
	}
	for name := range sums {
		if writes[name] > 1 && !distinctFields(list, name) {
			return fmt.Sprintf("a sum on %q beside another write to it", name)
		}
	}
	return ""
}

// distinctFields allows several HIncrBy and HSet on one hash, each on its own field.
func distinctFields(list []Effect, name string) bool {
	seen := map[string]bool{}
	for _, e := range list {
		if e.name != name || precondition[e.verb] || e.verb == "pexpire" {
			continue
		}
		if e.verb != "hincrby" && e.verb != "hset" || seen[e.args[0]] {
			return false
		}
		seen[e.args[0]] = true
	}
	return true
}

var kindOf = map[string]string{
	"set": "string", "incrby": "string", "equals": "string",
	"hset": "hash", "hdel": "hash", "hincrby": "hash", "hequals": "hash", "habsent": "hash",
	"sadd": "set", "srem": "set", "zadd": "sorted set", "zrem": "sorted set",
	"rpush": "list", "ltrim": "list", "length": "list",
}

var precondition = map[string]bool{
	"absent": true, "exists": true, "equals": true, "hequals": true, "habsent": true, "length": true,
}
