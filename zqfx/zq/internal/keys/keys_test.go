package keys_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
)

var queueName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// slot is how Redis Cluster places a key: CRC16 of what is between the first { and the next }, modulo 16384.
func slot(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for _, c := range []byte(key) {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}

func TestSlotIsRedis(t *testing.T) {
	t.Parallel()
	// From CLUSTER KEYSLOT.
	for key, want := range map[string]uint16{
		"123456789": 12739, "foo": 12182, "{foo}bar": 12182, "foo{}{bar}": 8363, "foo{{bar}}zap": 4015,
	} {
		if got := slot(key); got != want {
			t.Errorf("slot(%q) = %d, want %d", key, got, want)
		}
	}
}

// fixed are the names that need nothing more.
func fixed(k keys.Keys) []string {
	var names []string
	v := reflect.ValueOf(k)
	for i := range v.NumField() {
		if !strings.HasSuffix(v.Type().Field(i).Name, "Prefix") {
			names = append(names, v.Field(i).String())
		}
	}
	return names
}

// named is any key that a queue can have: one of the fixed ones, or one that is completed by a name.
func named(k keys.Keys, kind uint8, name string) (key, what string) {
	all := fixed(k)
	switch i := int(kind) % (len(all) + 3); i {
	case 0:
		return k.Lane(name), "lane " + name
	case 1:
		return k.Claim(name), "claim " + name
	case 2:
		return k.Effect(name), "effect " + name
	default:
		return all[i-3], fmt.Sprint("fixed ", i)
	}
}

func FuzzNames(f *testing.F) {
	odd := []string{"", "k", "{", "}", "{}", "a}b{c", "{other}", "zq:{q}:ready", ":", "\x00", "\xff", "lane:x", "check:u:ready"}
	for i, a := range odd {
		for j, b := range odd {
			f.Add("orders", uint16(i), uint8(i), a, "orders", uint16(j%2), uint8(j), b)
		}
	}
	f.Add("a", uint16(1), uint8(3), "", "a.1", uint16(0), uint8(3), "")
	f.Add("a", uint16(11), uint8(3), "", "a", uint16(1), uint8(3), "")
	f.Fuzz(func(t *testing.T, q1 string, p1 uint16, kind1 uint8, name1, q2 string, p2 uint16, kind2 uint8, name2 string) {
		if !queueName.MatchString(q1) || !queueName.MatchString(q2) {
			t.Skip()
		}
		a, b := keys.New(q1, int(p1)), keys.New(q2, int(p2))
		one, what1 := named(a, kind1, name1)
		two, what2 := named(b, kind2, name2)
		if same := q1 == q2 && p1 == p2 && what1 == what2; same != (one == two) {
			t.Errorf("%s of %s/%d is %q, %s of %s/%d is %q", what1, q1, p1, one, what2, q2, p2, two)
		}
		if slot(one) != slot(a.Ready) {
			t.Errorf("%q is not in the slot of its queue", one)
		}
		scratch := keys.Scratch(q1, int(p1), "0192")
		for _, key := range scratch.All() {
			if slot(key) != slot(a.Ready) || key == one || key == two {
				t.Errorf("the scratch key %q is in another slot, or not apart from %q and %q", key, one, two)
			}
		}
	})
}

// Keys.All has every fixed name once, so that a rehearsal leaves nothing behind.
func TestAllIsComplete(t *testing.T) {
	t.Parallel()
	k := keys.New("orders", 3)
	all := k.All()
	for _, name := range fixed(k) {
		if !slices.Contains(all, name) {
			t.Errorf("All lacks %s", name)
		}
	}
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("All has %d names, %d of them distinct", len(all), n)
	}
}

// The owner of a key is a claim's id or one of a few words; an id must never be one of them.
func FuzzClaimID(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), []byte("0123456789abcdeg"))
	hex := regexp.MustCompile(`^[0-9a-f]{32}$`)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var x, y [16]byte
		copy(x[:], a)
		copy(y[:], b)
		if id := keys.ClaimID(x); !hex.MatchString(id) || (x == y) != (id == keys.ClaimID(y)) {
			t.Errorf("ClaimID(%x) = %q, ClaimID(%x) = %q", x, id, y, keys.ClaimID(y))
		}
	})
}
