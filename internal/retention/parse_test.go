package retention_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/retention"
	"github.com/google/go-cmp/cmp"
)

func count(n int) retention.Value { return retention.Value{Kind: retention.Count, Count: n} }

func hours(n int) retention.Value { return lasting(time.Duration(n) * time.Hour) }

func lasting(d time.Duration) retention.Value {
	return retention.Value{Kind: retention.Duration, Duration: d}
}

func of(k retention.Kind, args ...retention.Value) retention.Value {
	return retention.Value{Kind: k, Args: args}
}

// A0-15: every form of the grammar.
func TestParse(t *testing.T) {
	longest := strings.Repeat("x", 512)
	context, parent, system, forever := of(retention.Context), of(retention.Parent), of(retention.System), of(retention.Forever)
	for text, want := range map[string]retention.Expr{
		"":                                     {},
		" \t":                                  {},
		"3":                                    {Disk: new(count(3))},
		"0":                                    {Disk: new(count(0))},
		"24h":                                  {Disk: new(hours(24))},
		"2 weeks":                              {Disk: new(hours(336))},
		"1h30m":                                {Disk: new(lasting(90 * time.Minute))},
		"1m 30s":                               {Disk: new(lasting(90 * time.Second))},
		"2.5h":                                 {Disk: new(lasting(150 * time.Minute))},
		"forever":                              {Disk: &forever},
		"FOREVER":                              {Disk: &forever},
		"all":                                  {Disk: &forever},
		"context":                              {Disk: &context},
		"parent":                               {Disk: &parent},
		"system":                               {Disk: &system},
		"disabled":                             {Disabled: true},
		"max(24h,5)":                           {Disk: new(of(retention.Max, hours(24), count(5)))},
		"min( 2 , 3,1h,2h )":                   {Disk: new(of(retention.Min, count(2), count(3), hours(1), hours(2)))},
		"max (1, min(2, 1h), parent)":          {Disk: new(of(retention.Max, count(1), of(retention.Min, count(2), hours(1)), parent))},
		"max(context,6h)":                      {Disk: new(of(retention.Max, context, hours(6)))},
		"max(5)":                               {Disk: new(of(retention.Max, count(5)))},
		"max(all,1)":                           {Disk: new(of(retention.Max, forever, count(1)))},
		"5 soft 10":                            {Disk: new(count(5)), Soft: new(count(10))},
		"5 soft max(1h, 2)":                    {Disk: new(count(5)), Soft: new(of(retention.Max, hours(1), count(2)))},
		"soft 10":                              {Soft: new(count(10))},
		"5 hard":                               {Disk: new(count(5)), Hard: true},
		"hard 5":                               {Disk: new(count(5)), Hard: true},
		"Hard 5 hash X":                        {Disk: new(count(5)), Hard: true, Hash: "X"},
		"disabled soft 5":                      {Disabled: true, Soft: new(count(5))},
		"disabled hard":                        {Disabled: true, Hard: true},
		"hash x disabled":                      {Disabled: true, Hash: "x"},
		"2 hash start-stop":                    {Disk: new(count(2)), Hash: "start-stop"},
		"hash Start-Stop 2":                    {Disk: new(count(2)), Hash: "Start-Stop"},
		"hash Start-Stop":                      {Hash: "Start-Stop"},
		"hash x soft 2":                        {Hash: "x", Soft: new(count(2))},
		"forever hash ${workflow-name} failed": {Disk: &forever, Hash: "${workflow-name} failed"},
		"hash ${a['b c']} 2":                   {Disk: new(count(2)), Hash: "${a['b c']}"},
		"2 hash ${a['b soft c']} x":            {Disk: new(count(2)), Hash: "${a['b soft c']} x"},
		"2 soft 5 hash a b":                    {Disk: new(count(2)), Soft: new(count(5)), Hash: "a b"},
		"2 hash a b soft 5":                    {Disk: new(count(2)), Soft: new(count(5)), Hash: "a b"},
		"2 hash a b hard":                      {Disk: new(count(2)), Hard: true, Hash: "a b"},
		`2 hash "a \"soft\" \\ b" hard`:        {Disk: new(count(2)), Hard: true, Hash: `a "soft" \ b`},
		`hash "a b" 1h`:                        {Disk: new(hours(1)), Hash: "a b"},
		`hash "a b"`:                           {Hash: "a b"},
		"2 hash ${unclosed":                    {Disk: new(count(2)), Hash: "${unclosed"},
		"hash soft 5":                          {Disk: new(count(5)), Hash: "soft"},
		"3 hash Größe":                         {Disk: new(count(3)), Hash: "Größe"},
		"3\nhash a":                            {Disk: new(count(3)), Hash: "a"},
		"3\r\nhash a":                          {Disk: new(count(3)), Hash: "a"},
		`hash "a\b"`:                           {Hash: `a\b`},
		"1000000000":                           {Disk: new(count(1_000_000_000))},
		"5 hash " + longest:                    {Disk: new(count(5)), Hash: longest},
		"5" + strings.Repeat(" ", 4095):        {Disk: new(count(5))},
	} {
		got, err := retention.Parse(text)
		if err != nil {
			t.Errorf("%q: got %v, want %v", text, err, want)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", text, diff)
		}
		if again, err := retention.Parse(got.String()); err != nil || !cmp.Equal(again, got) {
			t.Errorf("%q: written as %q, read back as %+v, %v", text, got, again, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct {
		text   string
		offset int
		want   string
	}{
		{"any(2, 24h)", 0, "max(...) keeps what any of its values keeps"},
		{"all(2, 24h)", 3, "min(...) keeps what all"},
		{"forever(2)", 7, `"(2)" is not understood here`},
		{"-1", 0, "has a sign"},
		{"+1", 0, "has a sign"},
		{"max(5, -1)", 7, "has a sign"},
		{"2.5", 0, "a count is a whole number"},
		{"min()", 4, "min() has no values"},
		{"max( )", 5, "max() has no values"},
		{"max", 3, "no bracket"},
		{"max 5", 4, "no bracket"},
		{"max(5", 5, "not closed"},
		{"max(5 6)", 6, "not closed"},
		{"max(5,)", 6, `")" is no retention value`},
		{"max(5,", 6, "a value is missing"},
		{"max(5) rubbish", 7, `"rubbish" is not understood here`},
		{"max(5)rubbish", 6, "clings to the bracket"},
		{"5)", 1, ""},
		{"5, 6", 1, `", 6" is not understood here`},
		{"5 6", 2, `"6" is not understood here`},
		{"5x", 1, `"x" is no unit`},
		{"5 parsecs", 2, "is not understood here"},
		{"1 month", 2, "is not understood here"},
		{"1month", 1, "no fixed length"},
		{"1h 30", 3, "is not understood here"},
		{"1000000001", 0, "too large"},
		{"99999999999", 0, "too large"},
		{"99999999999999999999999", 0, "too large"},
		{"9999999999d", 0, "too long"},
		{"rubbish", 0, `"rubbish" is no retention value`},
		{"unlimited", 0, "write forever"},
		{"none", 0, "write 0"},
		{"default", 0, "write parent or system"},
		{"(5)", 0, "is no retention value"},
		{"§", 0, "is no retention value"},
		{"max(1, disabled)", 7, "no value among others"},
		{"5 soft disabled", 7, "no value among others"},
		{"max(1, hash x)", 7, "cannot stand here"},
		{"hard", 0, "hard has no value"},
		{"hash x hard", 7, "hard has no value"},
		{"5 soft", 6, "a value is missing"},
		{"5 hard soft 3", 7, "more than one soft or hard"},
		{"5 soft 3 hard", 9, "more than one soft or hard"},
		{"hard 5 hard", 7, "more than one soft or hard"},
		{"5 soft 3 soft 2", 9, "more than one soft or hard"},
		{"hard soft 3", 5, "more than one soft or hard"},
		{"hash x 5 hash y", 9, "more than one hash"},
		{"hash", 4, "no text after it"},
		{"5 hash ", 7, "no text after it"},
		{"5 hash soft 3", 7, "no text after it"},
		{`5 hash ""`, 7, "no text after it"},
		{`5 hash "x`, 7, "never closed"},
		{`5 hash "x\`, 7, "never closed"},
		{`5 hash "x"y`, 10, "goes on after its quote"},
		{"hash a b 5", 7, `"b" is no retention value`},
		{"hash a b}", 7, `"b" is no retention value`},
		{"5 hash x soft rubbish", 14, `"rubbish" is no retention value`},
		{"5 hash a hard b", 14, "in double quotes"},
		{"5 hash a\x01b", 7, "control character"},
		{"5 hash \x01b", 7, "control character"},
		{"5 hash " + strings.Repeat("x", 513), 7, "longer than 512 bytes"},
		{"5\x00", 1, ""},
		{"\xff", 0, "not UTF-8"},
		{strings.Repeat("max(", 20) + "1" + strings.Repeat(")", 20), 64, "nested deeper than 16"},
		{"max(" + strings.Repeat("1,", 70) + "1)", 4 + 2*63, "more than 64 values"},
		{strings.Repeat("x", 5000), 4096, "longer than 4096 bytes"},
	} {
		got, err := retention.Parse(tc.text)
		e, ok := errors.AsType[*retention.Error](err)
		if !ok || e.Offset != tc.offset || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.60q: got %+v, %v (%+v), want offset %d and %q", tc.text, got, err, e, tc.offset, tc.want)
		}
		if strings.Contains(err.Error(), " ()") {
			t.Errorf("%.60q: got %v, want no brackets for a hint that is not there", tc.text, err)
		}
		if ok && len(err.Error()) > 400 {
			t.Errorf("%.60q: got a message of %d bytes", tc.text, len(err.Error()))
		}
	}
}

func TestExprAsJSON(t *testing.T) {
	want, err := retention.Parse("max(24h, 5) soft 10 hash A b")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(want)
	if err != nil || string(data) != `"hash \"A b\" max(1d, 5) soft 10"` {
		t.Errorf("got %s, %v", data, err)
	}
	var got retention.Expr
	if err := json.Unmarshal(data, &got); err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if err := json.Unmarshal([]byte(`"any(1)"`), &got); err == nil {
		t.Error("any(1): got no error")
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"max(24h,5)", "min(2, 3, 1h, 2h)", "forever hash ${workflow-name} failed", `hash "a \" b" hard 5`, "any(2, 24h)", "-1", "2.5",
		"min()", "max(5)x", "1h30m", "disabled soft 5", "5 soft max(context, parent, system) hash x", "all", "${", "5 hash ${a soft b} soft 2",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := retention.Parse(text)
		if err != nil {
			if e, ok := errors.AsType[*retention.Error](err); !ok || e.Offset < 0 || e.Offset > len(text) {
				t.Fatalf("got %#v, want an error with an offset within the text", err)
			}
			return
		}
		again, err := retention.Parse(e.String())
		if err != nil || !cmp.Equal(again, e) {
			t.Fatalf("%q: written as %q, read back as %+v, %v", text, e, again, err)
		}
		p := retention.Start(e, nil, retention.Default())
		var stored retention.Policy
		data, err := json.Marshal(p)
		if err == nil {
			err = json.Unmarshal(data, &stored)
		}
		if err != nil || !cmp.Equal(stored, p) {
			t.Fatalf("%q: policy %+v stored as %s, read back as %+v, %v", text, p, data, stored, err)
		}
	})
}
