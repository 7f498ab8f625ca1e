package sequence

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Header is the header that carries a message's number, unless NumberOf reads it elsewhere.
const Header = "zq-seq"

// MaxNumber is the highest number, 2^53−1: the highest that a score in Redis holds exactly.
const MaxNumber = int64(1)<<53 - 1

// ErrUnnumbered says that a message has no number at all. A function given to NumberOf returns it.
var ErrUnnumbered = errors.New("sequence: the message has no number")

// Number numbers a message that a kind sends. Messages of one key have the numbers 1, 2, 3 and so on (see First),
// none left out. A number that the middleware does not take makes the message a dead letter.
func Number(n int64) zq.MessageOption { return zq.WithHeader(Header, strconv.FormatInt(n, 10)) }

// fromHeader is how a number is read unless NumberOf says otherwise.
func fromHeader(d *zq.Delivery) (int64, error) {
	text, ok := d.Headers[Header]
	if !ok {
		return 0, ErrUnnumbered
	}
	return parseNumber(text)
}

// parseNumber takes the one way to write a number that FormatInt has: "007" and "+7" are refused, so that no two
// producers can mean the same number without knowing.
func parseNumber(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("sequence: %.40q is no number", text)
	}
	return n, nil
}

// number reads a message's number. Any error but ErrUnnumbered is for ever.
func (g *gate) number(d *zq.Delivery) (int64, error) {
	n, err := g.cfg.number(d)
	switch {
	case err != nil:
		return 0, err
	case n < g.cfg.first || n > MaxNumber:
		return 0, fmt.Errorf("sequence: number %d, want %d to %d", n, g.cfg.first, MaxNumber)
	case d.Key == "":
		return 0, fmt.Errorf("sequence: number %d without an ordering key", n)
	}
	return n, nil
}
