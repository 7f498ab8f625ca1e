package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

type field struct {
	name     string
	into     any
	optional bool
}

// decode reads one line strictly. encoding/json by itself would take "KIND" for "kind", the last of two
// equal fields, null for zero and a missing field for an empty one; each of them hides a broken export.
// Fields that it does not know are passed over: a newer shop may write more.
func decode(line []byte) (Event, error) {
	var e Event
	if !utf8.Valid(line) {
		return e, errors.New("not UTF-8")
	}
	members, err := object(line)
	if err != nil {
		return e, err
	}
	var amount json.RawMessage
	err = fill(members, "", []field{
		{name: "order_id", into: &e.OrderID},
		{name: "customer", into: &e.Customer},
		{name: "sequence", into: &e.Sequence},
		{name: "kind", into: &e.Kind},
		{name: "amount", into: &amount},
		{name: "at", into: &e.At},
		{name: "gateway_timeouts", into: &e.GatewayTimeouts, optional: true},
	})
	if err != nil {
		return e, err
	}
	if members, err = object(amount); err != nil {
		return e, fmt.Errorf("field amount: %w", err)
	}
	err = fill(members, "amount.", []field{
		{name: "minor", into: &e.Amount.Minor},
		{name: "currency", into: &e.Amount.Currency},
	})
	if err != nil {
		return e, err
	}
	return e, e.Validate()
}

// object splits a JSON object into its members, with exact names and no name twice.
func object(text []byte) (map[string]json.RawMessage, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(whole))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	members := make(map[string]json.RawMessage)
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		name, _ := token.(string)
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("field %q is given twice", clip(name, 40))
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		members[name] = value
	}
	return members, nil
}

func fill(members map[string]json.RawMessage, prefix string, fields []field) error {
	for _, f := range fields {
		value, there := members[f.name]
		switch {
		case !there && f.optional:
			continue
		case !there:
			return fmt.Errorf("field %s%s is missing", prefix, f.name)
		case bytes.Equal(value, []byte("null")):
			return fmt.Errorf("field %s%s is null", prefix, f.name)
		}
		if err := json.Unmarshal(value, f.into); err != nil {
			return fmt.Errorf("field %s%s: want %s, have %s", prefix, f.name, wanted(f.into), clip(string(value), 40))
		}
	}
	return nil
}

func wanted(into any) string {
	switch into.(type) {
	case *int, *int64:
		return "a whole number"
	case *time.Time:
		return "a time as 2006-01-02T15:04:05Z"
	}
	return "a text"
}
