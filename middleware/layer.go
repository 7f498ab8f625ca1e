package middleware

import (
	"github.com/zqueue/zqueue/zqfx/zq"
)

// Layer is one place in a plan. Only the functions of this package make one; the zero value is refused. It is
// a value: a plan may share it with others.
type Layer struct {
	role  Role
	name  string
	build func(*site) (part, error)

	beside Role // of a user layer: directly outside or inside this role, in a standard plan
	inside bool
}

// site is where layers are built: what the plan is built with, and who wants to hear from inner layers.
type site struct {
	Env
	// outcomes are told what idempotency did with a message.
	outcomes []outcomeFunc
}

// part is what one layer adds to the stack; any field may be empty.
type part struct {
	mw       zq.Middleware
	send     zq.SendMiddleware
	observer *zq.Observer
	// open starts what must be ended. It is called when the whole plan has been built without a fault.
	open func() (closer, error)
}

type closer func() error

// User is a layer of the application's own. In a standard plan it stands inside all others but the inner
// recovery, in the order given, unless Before or After says otherwise. name tells it apart from others.
func User(name string, mw zq.Middleware) Layer {
	return Layer{role: RoleUser, name: name, build: func(*site) (part, error) {
		if mw == nil {
			return part{}, fault("user layer "+name, "nil", "a middleware")
		}
		return part{mw: mw}, nil
	}}
}

// Before puts a user layer directly outside the layer of this role in a standard plan. Several before one role
// keep the order given.
func (l Layer) Before(r Role) Layer {
	l.beside, l.inside = r, false
	return l
}

// After puts a user layer directly inside the layer of this role in a standard plan. Several after one role
// keep the order given.
func (l Layer) After(r Role) Layer {
	l.beside, l.inside = r, true
	return l
}

// Name is "user:" and the name of a user layer, or else the layer's role.
func (l Layer) Name() string {
	if l.role == RoleUser {
		return "user:" + l.name
	}
	return l.role.String()
}

// Role is what the layer is there for.
func (l Layer) Role() Role { return l.role }
