package zqfxtest

import (
	"context"
	"errors"
	"testing"
)

// A drain is over when two looks in a row see nothing, and nothing came between them.
func TestDrainLooksTwice(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	cases := map[string]struct {
		sights  []sight
		started bool
		looks   int
		err     error
	}{
		"nothing ever":              {[]sight{{0, 0, ""}, {0, 0, ""}}, false, 2, nil},
		"some, then none":           {[]sight{{2, 2, "two"}, {1, 2, "one"}, {0, 2, ""}, {0, 2, ""}}, true, 4, nil},
		"some came and went":        {[]sight{{0, 5, ""}, {0, 6, ""}, {0, 7, ""}, {0, 7, ""}}, true, 4, nil},
		"some came":                 {[]sight{{0, 5, ""}, {1, 6, "one"}, {0, 6, ""}, {0, 6, ""}}, true, 4, nil},
		"nobody works":              {[]sight{{1, 1, "one"}}, false, 1, errNotStarted},
		"nobody works any more":     {[]sight{{0, 1, ""}, {1, 2, "one"}}, false, 2, errNotStarted},
		"a look fails":              {[]sight{{1, 1, "one"}}, true, 2, broken},
		"nothing, and a look fails": {[]sight{{0, 1, ""}}, true, 2, broken},
	}
	for name, c := range cases {
		looks := 0
		err := drain(t.Context(), func(context.Context) (sight, error) {
			looks++
			if looks > len(c.sights) {
				return sight{}, broken
			}
			return c.sights[looks-1], nil
		}, func() bool { return c.started })
		if looks != c.looks || !errors.Is(err, c.err) {
			t.Errorf("%s: %d looks, %v; want %d, %v", name, looks, err, c.looks, c.err)
		}
	}
}
