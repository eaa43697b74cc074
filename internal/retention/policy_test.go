package retention_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/internal/retention"
	"github.com/google/go-cmp/cmp"
)

func parse(t testing.TB, text string) retention.Expr {
	t.Helper()
	e, err := retention.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func system(t testing.TB, disk, soft string) retention.Policy {
	t.Helper()
	return retention.Start(parse(t, disk+" soft "+soft), nil, retention.Default())
}

func show(p retention.Policy) string {
	s := fmt.Sprintf("%s soft %s", p.Disk, p.Soft)
	if p.Hash != "" {
		s += " hash " + p.Hash
	}
	if p.Disabled {
		s += " disabled"
	}
	return s
}

// A0-16: 3 and 3, unless the operator says otherwise.
func TestDefault(t *testing.T) {
	if got := show(retention.Default()); got != "3 soft 3" {
		t.Errorf("got %s, want 3 soft 3", got)
	}
}

// A0-15: what a run starts with.
func TestStart(t *testing.T) {
	parent := retention.Policy{Hash: "above", Disk: limit(t, "7"), Soft: limit(t, "8")}
	disabled := retention.Policy{Disk: limit(t, "7"), Soft: limit(t, "0"), Disabled: true}
	for _, tc := range []struct {
		text   string
		parent *retention.Policy
		want   string
	}{
		{"", nil, "4 soft 5"},
		{"parent", nil, "4 soft 5"},
		{"context", nil, "4 soft 5"},
		{"system", nil, "4 soft 5"},
		{"", &parent, "7 soft 8"},
		{"parent", &parent, "7 soft 8"},
		{"context", &parent, "7 soft 8"},
		{"system", &parent, "4 soft 8"},
		{"system soft system", &parent, "4 soft 5"},
		{"1 soft parent", &parent, "1 soft 8"},
		{"1", &parent, "1 soft 8"},
		{"1 soft 2 hash Below", &parent, "1 soft 2 hash Below"},
		{"max(parent, 1h) hard", &parent, "max(7, 1h) soft max(7, 1h)"},
		{"disabled", nil, "4 soft 5 disabled"},
		{"disabled soft 9", nil, "4 soft 9 disabled"},
		{"disabled hard", nil, "4 soft 0 disabled"},
		{"", &disabled, "7 soft 0 disabled"},
		{"5", &disabled, "5 soft 0 disabled"},
	} {
		if got := show(retention.Start(parse(t, tc.text), tc.parent, system(t, "4", "5"))); got != tc.want {
			t.Errorf("%q: got %s, want %s", tc.text, got, tc.want)
		}
	}
}

// A0-15: changes on the way; each builds on the one before.
func TestChange(t *testing.T) {
	parent := retention.Policy{Disk: limit(t, "7"), Soft: limit(t, "8")}
	disabled := retention.Policy{Disabled: true}
	for _, tc := range []struct {
		name    string
		parent  *retention.Policy
		changes []string
		want    string
	}{
		{"nothing given changes nothing", &parent, []string{"5 soft 6 hash a", ""}, "5 soft 6 hash a"},
		{"the hash only", &parent, []string{"5 soft 6 hash a", "hash b"}, "5 soft 6 hash b"},
		{"the value only", &parent, []string{"5 soft 6 hash a", "9"}, "9 soft 6 hash a"},
		{"soft only", &parent, []string{"5 soft 6 hash a", "soft 9"}, "5 soft 9 hash a"},
		{"soft by itself", &parent, []string{"5 soft 6", "soft max(context, 9)"}, "5 soft 9"},
		{"hard", &parent, []string{"5 soft 6", "context hard"}, "5 soft 5"},
		{"hard holds what it was then", &parent, []string{"5 hard", "9"}, "9 soft 5"},
		{"context is the value before", &parent, []string{"max(context, 1h)"}, "max(7, 1h)" + " soft 8"},
		{"context does not grow", &parent, slices.Repeat([]string{"max(context, 1h)", "min(context, max(9, 1h))"}, 50), "max(7, 1h) soft 8"},
		{"parent again", &parent, []string{"forever", "parent"}, "7 soft 8"},
		{"system again", &parent, []string{"forever", "system"}, "4 soft 8"},
		{"disabled is set", &parent, []string{"5", "disabled"}, "5 soft 8 disabled"},
		{"disabled is cleared", &parent, []string{"5", "disabled", "context"}, "5 soft 8"},
		{"disabled is cleared by a hash too", &parent, []string{"5", "disabled", "hash a"}, "5 soft 8 hash a"},
		{"a parent's disabled stays", &disabled, []string{"5", "forever"}, "forever soft 0 disabled"},
	} {
		p := retention.Start(retention.Expr{}, tc.parent, system(t, "4", "5"))
		for _, text := range tc.changes {
			p = p.Change(parse(t, text), tc.parent, system(t, "4", "5"))
		}
		if got := show(p); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

func limit(t testing.TB, text string) retention.Limit {
	t.Helper()
	l, err := retention.NewLimit(*parse(t, text).Disk)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// One form for all that mean the same.
func TestLimit(t *testing.T) {
	for text, want := range map[string]string{
		"0":                                  "0",
		"3":                                  "3",
		"forever":                            "forever",
		"0s":                                 "0s",
		"max(2, 3, 1h, 2h)":                  "max(3, 2h)",
		"min(2, 3, 1h, 2h)":                  "min(2, 1h)",
		"max(2, min(3, 1h))":                 "max(2, min(3, 1h))",
		"min(max(2, 1h), 5)":                 "max(2, min(5, 1h))",
		"max(2, min(2, 1h))":                 "2",
		"max(forever, 5)":                    "forever",
		"min(forever, 5)":                    "5",
		"min(0, 1h)":                         "0",
		"max(0, 1h)":                         "1h",
		"min(max(1, 4h), max(2, 3h), 100)":   "max(1, min(2, 4h), min(100, 3h))",
		"min(max(1, 4h), max(2, 3h), 1m, 1)": "min(1, 1m)",
		"min(max(min(2, 5h), min(3, 4h)), forever)": "max(min(2, 5h), min(3, 4h))",
		"min(forever, max(min(2, 5h), min(3, 4h)))": "max(min(2, 5h), min(3, 4h))",
	} {
		if got := limit(t, text).String(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"parent", "max(1, min(2, context))", "system"} {
		if got, err := retention.NewLimit(*parse(t, text).Disk); err == nil {
			t.Errorf("%s: got %v, want an error", text, got)
		}
	}
}

// A definition made for it does not let a policy grow without bound; what is beyond the bound is kept rather than purged.
func TestLimitIsBounded(t *testing.T) {
	p := retention.Start(parse(t, "0"), nil, retention.Default())
	for i := range 2000 {
		p = p.Change(parse(t, fmt.Sprintf("max(context, min(%d, %dh))", i+1, 2000-i)), nil, retention.Default())
	}
	data, err := json.Marshal(p)
	if err != nil || len(data) > 16<<10 {
		t.Fatalf("got %d bytes, %v", len(data), err)
	}
	var back retention.Policy
	if err := json.Unmarshal(data, &back); err != nil || !cmp.Equal(back, p) {
		t.Errorf("got %v, %v", back, err)
	}
	// The two ends of the stair: the run that closed last stays for as long as any change said.
	if got := p.Disk.String(); !strings.HasPrefix(got, "max(min(1745, 83d8h), ") || !strings.Contains(got, "min(2000, 1h)") || strings.Count(got, "min") != 256 {
		t.Errorf("got %d corners: %s", strings.Count(got, "min"), got)
	}
}

func TestStoredLimitIsChecked(t *testing.T) {
	for _, text := range []string{"parent", "3 4", "max(", "", strings.Repeat("9", 1<<20)} {
		var l retention.Limit
		if err := l.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%.20q: got %v, want an error", text, l)
		}
	}
}
