package zq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Conditions to test with errors.Is.
var (
	// ErrInvalid is behind every *InvalidError.
	ErrInvalid = errors.New("zq: invalid")
	// ErrClosed is returned by a producer or consumer after its end.
	ErrClosed = errors.New("zq: closed")
	// ErrOutcomeUnknown says that a write may or may not have happened. To send it again with the same id is safe.
	ErrOutcomeUnknown = errors.New("zq: outcome unknown")
	// ErrStoreFull says that Redis is out of memory: nothing was enqueued. Consumers go on.
	ErrStoreFull = errors.New("zq: redis is out of memory")
	// ErrNewerLayout says that a newer library wrote this queue; this one must not touch it.
	ErrNewerLayout = errors.New("zq: the queue has a newer layout than this library knows")
	// ErrWrongType says that a key of the queue holds something else; nothing was changed.
	ErrWrongType = errors.New("zq: a key of the queue has the wrong type")
	// ErrOldServer says that Redis is older than 7.0.
	ErrOldServer = errors.New("zq: redis 7.0 or newer is needed")
	// ErrNotFound says that there is no such message.
	ErrNotFound = errors.New("zq: not found")
	// ErrLive says that a message is not a dead letter but alive in some other state.
	ErrLive = errors.New("zq: the message is not a dead letter")
	// ErrTooLarge says that Verify would hold up Redis for too long.
	ErrTooLarge = errors.New("zq: too many messages to verify at once")
)

// Causes of a handler's ended context; ask context.Cause.
var (
	// ErrShutdown ends the context of handlers that are still at work when the drain time is over.
	ErrShutdown = errors.New("zq: the consumer shuts down")
	// ErrLeaseLost ends the context of handlers whose message somebody else may run now, and is the result
	// of anything that such a handler still tries to record.
	ErrLeaseLost = errors.New("zq: lease lost")
	// ErrTimeout ends the context of a handler that ran longer than its maximum run time.
	ErrTimeout = errors.New("zq: maximum run time exceeded")
	// ErrCancelled ends the context of a handler whose message an operator cancelled.
	ErrCancelled = errors.New("zq: cancelled")
)

// InvalidError says which field has which value and what it may be. Nothing was sent.
type InvalidError struct {
	Field, Value, Want string
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("zq: %s is %s, want %s", e.Field, e.Value, e.Want)
}

// Is makes every InvalidError an ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

func invalid(field string, value any, want string) *InvalidError {
	return &InvalidError{Field: field, Value: fmt.Sprint(value), Want: want}
}

// ReplicationError says that a message is on the master, but that fewer replicas than asked confirmed it in
// time. It is an ErrOutcomeUnknown: a failover may or may not lose it. The receipt beside it is valid.
type ReplicationError struct {
	Want, Got int
}

func (e *ReplicationError) Error() string {
	return fmt.Sprintf("zq: %d replicas confirmed, want %d", e.Got, e.Want)
}

// Is makes every ReplicationError an ErrOutcomeUnknown.
func (e *ReplicationError) Is(target error) bool { return target == ErrOutcomeUnknown }

// PanicError is what a handler's panic becomes.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("zq: handler panicked: %v", e.Value) }

// Unwrap gives the panic's value if that was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// EffectError says that an effect could not be applied: its precondition did not hold, or its key or number
// did not fit. Nothing of its ack or checkpoint was applied.
type EffectError struct {
	Index  int    // which effect, from 0; one past the last means a follow-up message
	Effect string // its verb and key
}

func (e *EffectError) Error() string {
	return fmt.Sprintf("zq: effect %d (%s) does not hold", e.Index, e.Effect)
}

// wrap adds what was being done, and gives errors of the server the sentinel they mean.
func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	for prefix, sentinel := range meanings {
		if redis.HasErrorPrefix(err, prefix) {
			return fmt.Errorf("zq: %s: %w: %w", doing, sentinel, err)
		}
	}
	return fmt.Errorf("zq: %s: %w", doing, err)
}

var meanings = map[string]error{
	"OOM ":     ErrStoreFull,
	"ZQLAYOUT": ErrNewerLayout,
	"ZQTYPE":   ErrWrongType,
	"ZQLARGE":  ErrTooLarge,
}

// transient tells whether the same call may succeed later without anybody's help: connections, failovers,
// a server that loads. Everything else is told to whoever can act.
func transient(err error) bool {
	if err == nil {
		return false
	}
	var netErr net.Error
	switch {
	case errors.As(err, &netErr), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, context.DeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, redis.ErrPoolExhausted):
		return true
	}
	for _, prefix := range passing {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return strings.Contains(err.Error(), "use of closed network connection")
}

var passing = []string{
	"READONLY", "LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS", "MOVED", "ASK", "BUSY", "UNBLOCKED",
	"max number of clients",
}

// unsure tells whether a failed write may have happened all the same. Only what the server or a script said of
// this very call is certain: the client may have tried before, and hides that it did.
func unsure(err error) bool {
	var reply redis.Error
	if errors.Is(err, redis.ErrClosed) {
		return false
	}
	return !errors.As(err, &reply) || transient(err)
}
