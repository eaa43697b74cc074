package subject

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrInvalidSubject is wrapped when a subject does not have the expected form. A bad id inside it
// wraps [ErrInvalidID] as well.
var ErrInvalidSubject = errors.New("invalid subject")

// maxPartitionDigits bounds a partition number far above any real one.
const maxPartitionDigits = 6

// ParseIn reads drover.<ns>.in.<p>.<wid>.<kind>[.<rest>…]. It allocates only for escaped ids and
// for rest.
func ParseIn(subject string) (p int, wid, kind string, rest []string, err error) {
	p, wid, tail, err := parseHead(subject, "in")
	if err != nil {
		return 0, "", "", nil, err
	}
	first, tail, more := strings.Cut(tail, ".")
	if kind, err = parseID(subject, "kind", first); err != nil {
		return 0, "", "", nil, err
	}
	if more {
		rest = make([]string, 0, 1+strings.Count(tail, "."))
	}
	for more {
		first, tail, more = strings.Cut(tail, ".")
		r, err := parseID(subject, "token", first)
		if err != nil {
			return 0, "", "", nil, err
		}
		rest = append(rest, r)
	}
	return p, wid, kind, rest, nil
}

// ParseSignalStored reads drover.<ns>.sig.<p>.<wid>.<name>.
func ParseSignalStored(subject string) (p int, wid, name string, err error) {
	return parseThree(subject, "sig", "signal name")
}

// ParseHistory reads drover.<ns>.history.<p>.<wid>.<run>. A fence subject is refused.
func ParseHistory(subject string) (p int, wid, run string, err error) {
	return parseThree(subject, "history", "run id")
}

// ParseAlarm reads drover.<ns>.alarm.<p>.<wid>.<run>.
func ParseAlarm(subject string) (p int, wid, run string, err error) {
	return parseThree(subject, "alarm", "run id")
}

// ParseBeat reads drover.<ns>.beat.<p>.<wid>.<list>.
func ParseBeat(subject string) (p int, wid, list string, err error) {
	return parseThree(subject, "beat", "list")
}

// ParseOutcome reads drover.<ns>.outcome.<p>.<wid>.<list>.
func ParseOutcome(subject string) (p int, wid, list string, err error) {
	return parseThree(subject, "outcome", "list")
}

// ParseOwned reads drover.<ns>.owned.<p>.
func ParseOwned(subject string) (p int, err error) {
	ns, err := NamespaceOf(subject)
	if err != nil {
		return 0, err
	}
	num, ok := strings.CutPrefix(subject, ns.start("owned."))
	if !ok {
		return 0, fmt.Errorf("%w %q: want %s.<namespace>.owned.<partition>",
			ErrInvalidSubject, subject, Root)
	}
	if p, err = parsePartition(num); err != nil {
		return 0, fmt.Errorf("%w %q: %w", ErrInvalidSubject, subject, err)
	}
	return p, nil
}

// NamespaceOf gives the namespace of a subject of ours.
func NamespaceOf(subject string) (Namespace, error) {
	rest, ok := strings.CutPrefix(subject, Root+".")
	ns, _, more := strings.Cut(rest, ".")
	if !ok || !more {
		return "", fmt.Errorf("%w %q: want %s.<namespace>.…", ErrInvalidSubject, subject, Root)
	}
	if err := ValidateName("namespace", ns); err != nil {
		return "", fmt.Errorf("%w %q: %w", ErrInvalidSubject, subject, err)
	}
	return Namespace(ns), nil
}

// parseThree reads drover.<ns>.<kind>.<p>.<wid>.<last>.
func parseThree(subject, kind, field string) (p int, wid, last string, err error) {
	p, wid, tail, err := parseHead(subject, kind)
	if err != nil {
		return 0, "", "", err
	}
	if last, err = parseID(subject, field, tail); err != nil {
		return 0, "", "", err
	}
	return p, wid, last, nil
}

// parseHead reads drover.<ns>.<kind>.<p>.<wid>. and returns what follows, which may hold dots.
func parseHead(subject, kind string) (p int, wid, tail string, err error) {
	ns, err := NamespaceOf(subject)
	if err != nil {
		return 0, "", "", err
	}
	rest := subject[len(Root)+1+len(ns)+1:]
	got, rest, _ := strings.Cut(rest, ".")
	if got != kind {
		return 0, "", "", fmt.Errorf("%w %q: third token is %q, want %q",
			ErrInvalidSubject, subject, got, kind)
	}
	num, rest, _ := strings.Cut(rest, ".")
	if p, err = parsePartition(num); err != nil {
		return 0, "", "", fmt.Errorf("%w %q: %w", ErrInvalidSubject, subject, err)
	}
	tok, tail, ok := strings.Cut(rest, ".")
	if !ok {
		return 0, "", "", fmt.Errorf(
			"%w %q: too few tokens, want %s.<namespace>.%s.<partition>.<workflow id>.…",
			ErrInvalidSubject, subject, Root, kind)
	}
	if wid, err = parseID(subject, "workflow id", tok); err != nil {
		return 0, "", "", err
	}
	return p, wid, tail, nil
}

func parseID(subject, field, tok string) (string, error) {
	id, err := ParseToken(tok)
	if err != nil {
		return "", fmt.Errorf("%w %q: %s: %w", ErrInvalidSubject, subject, field, err)
	}
	return id, nil
}

// parsePartition accepts only the form that strconv.Itoa writes.
func parsePartition(s string) (int, error) {
	if s == "" || len(s) > maxPartitionDigits || (s[0] == '0' && len(s) > 1) {
		return 0, fmt.Errorf("partition %q: want a number without leading zeros", s)
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, fmt.Errorf("partition %q: want a number without leading zeros", s)
		}
	}
	return strconv.Atoi(s)
}
