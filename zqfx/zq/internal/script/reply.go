package script

import (
	"errors"
	"fmt"
	"strconv"
)

// errReply marks an answer that no script of this set gives: another program answers under its name, or
// something between cut the reply.
var errReply = errors.New("unexpected reply")

func unexpected(script string, reply any) error {
	return fmt.Errorf("script %s: %w: %T", script, errReply, reply)
}

// list takes an array reply of at least n items.
func list(script string, reply any, n int) ([]any, error) {
	items, ok := reply.([]any)
	if !ok || len(items) < n {
		return nil, unexpected(script, reply)
	}
	return items, nil
}

// texts takes an array of texts.
func texts(script string, reply any) ([]string, error) {
	items, err := list(script, reply, 0)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(items))
	for i := range items {
		out[i] = text(items[i])
	}
	return out, nil
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err == nil {
			return n
		}
		f, _ := strconv.ParseFloat(v, 64)
		return int64(f)
	}
	return 0
}
