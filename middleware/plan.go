package middleware

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Plan is a list of layers, the first outermost. It is an immutable value and safe for concurrent use; the
// zero value is the empty plan. What is wrong with it is told by Validate and Build.
type Plan struct {
	layers []Layer
	faults []error
}

// Standard is the standard plan: recovery, tracing, metrics, logging, deadletter, retry and inner recovery
// with their defaults, and the given layers in their places. A given layer takes the place of the default of
// its role.
func Standard(layers ...Layer) Plan {
	var p Plan
	given := make(map[Role]bool, len(layers))
	for _, l := range layers {
		given[l.role] = true
	}
	placed, free := partition(layers)
	for _, l := range defaults() {
		if !given[l.role] {
			placed = append(placed, l)
		}
	}
	// Stable: user layers and roles given twice keep their order; the latter are a fault.
	slices.SortStableFunc(placed, func(a, b Layer) int { return int(a.role) - int(b.role) })
	p.layers = placed
	for _, r := range sides(free) {
		p.insert(r, free)
	}
	return p
}

// Ordered is exactly these layers in this order, the first outermost.
func Ordered(layers ...Layer) Plan {
	p := Plan{layers: slices.Clone(layers)}
	for _, l := range layers {
		if l.beside != roleNone {
			p.faults = append(p.faults, fault("plan", l.Name()+" with a place of its own",
				"no Before or After in Ordered, which keeps the order of its list"))
		}
	}
	return p
}

// Without is the plan without the layers of these roles.
func (p Plan) Without(roles ...Role) Plan {
	p.layers = slices.DeleteFunc(slices.Clone(p.layers), func(l Layer) bool { return slices.Contains(roles, l.role) })
	return p
}

// Names are the names of the layers, outermost first.
func (p Plan) Names() []string {
	names := make([]string, len(p.layers))
	for i, l := range p.layers {
		names[i] = l.Name()
	}
	return names
}

// Validate lists all that is wrong with the plan's order. What is wrong with a layer itself is told by Build.
func (p Plan) Validate() error {
	faults := slices.Clone(p.faults)
	seen := make(map[string]bool, len(p.layers))
	for i, l := range p.layers {
		switch name := l.Name(); {
		case l.build == nil:
			faults = append(faults, fault("plan", "layer "+strconv.Itoa(i+1)+" is the zero Layer", "a layer made by this package"))
		case l.role == RoleUser && l.name == "":
			faults = append(faults, fault("plan", "a user layer without a name", "a name for each"))
		case seen[name]:
			faults = append(faults, fault("plan", name+" twice", "one layer of each role, and user layers with names of their own"))
		default:
			seen[name] = true
		}
	}
	return errors.Join(append(faults, orderFaults(p.layers)...)...)
}

// partition splits off the layers that have a place of their own.
func partition(layers []Layer) (placed, free []Layer) {
	for _, l := range layers {
		if l.beside == roleNone {
			placed = append(placed, l)
		} else {
			free = append(free, l)
		}
	}
	return placed, free
}

// side is one side of a role's layer.
type side struct {
	role   Role
	inside bool
}

func (l Layer) side() side { return side{l.beside, l.inside} }

// sides are the places that layers ask for, each once.
func sides(layers []Layer) []side {
	var all []side
	for _, l := range layers {
		if !slices.Contains(all, l.side()) {
			all = append(all, l.side())
		}
	}
	return all
}

// insert puts the layers that ask for this side into the plan.
func (p *Plan) insert(s side, free []Layer) {
	var group []Layer
	for _, l := range free {
		if l.side() != s {
			continue
		}
		if l.role != RoleUser {
			p.faults = append(p.faults, fault("plan", l.Name()+" with a place of its own", "Before and After on user layers alone"))
		}
		group = append(group, l)
	}
	at := slices.IndexFunc(p.layers, func(l Layer) bool { return l.role == s.role })
	if at < 0 || s.role == RoleUser {
		p.faults = append(p.faults, fault("plan", strings.Join(namesOf(group), ", ")+" beside "+s.role.String(),
			"a role that the plan has one layer of"))
		p.layers = append(p.layers, group...) // so that what else is wrong is told too
		return
	}
	if s.inside {
		at++
	}
	p.layers = slices.Insert(p.layers, at, group...)
}

func namesOf(layers []Layer) []string { return Plan{layers: layers}.Names() }

func fault(field, value, want string) error {
	return &zq.InvalidError{Field: field, Value: value, Want: want}
}
