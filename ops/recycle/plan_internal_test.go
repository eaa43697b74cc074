package recycle

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func compiled(t *testing.T, r ops.Recycle) *plan {
	t.Helper()
	p, err := compile(&r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// S2-5: the time is configurable, in any zone, and comes once a day also where the clock is changed.
func TestS2_05Slots(t *testing.T) {
	berlin := ops.Recycle{At: "02:30", TimeZone: "Europe/Berlin"}
	for name, tc := range map[string]struct {
		set   ops.Recycle
		after string
		want  []string
	}{
		"each day":         {ops.Recycle{At: "03:30"}, "2026-03-01T03:30:00Z", []string{"2026-03-02T03:30:00Z", "2026-03-03T03:30:00Z"}},
		"spring gap":       {berlin, "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"autumn fold":      {berlin, "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"leap day":         {ops.Recycle{At: "00:00"}, "2028-02-28T12:00:00Z", []string{"2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"}},
		"every second day": {ops.Recycle{At: "00:10", Every: schemas.Duration(48 * time.Hour)}, "2026-12-29T12:00:00Z", []string{"2026-12-31T00:10:00Z", "2027-01-02T00:10:00Z"}},
		"never":            {ops.Recycle{}, "2026-03-01T00:00:00Z", []string{""}},
		"asked for":        {ops.Recycle{At: "03:30", Asked: schemas.At(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))}, "2026-03-01T08:00:00Z", []string{"2026-03-01T09:00:00Z", "2026-03-02T03:30:00Z"}},
	} {
		p, at := compiled(t, tc.set), instant(t, tc.after)
		for _, want := range tc.want {
			got := p.next(at)
			if got.IsZero() != (want == "") || want != "" && !got.Equal(instant(t, want)) {
				t.Errorf("%s: got %v after %v, want %q", name, got, at, want)
			}
			if at = got; !at.IsZero() && !p.last(at).Equal(at) {
				t.Errorf("%s: the latest at %v is %v", name, at, p.last(at))
			}
		}
	}
}

func TestLatestSlot(t *testing.T) {
	set := instant(t, "2026-03-01T12:00:00Z")
	p := compiled(t, ops.Recycle{At: "03:30", Every: schemas.Duration(72 * time.Hour), UpdatedAt: schemas.At(set)})
	first := p.next(set)
	if got := p.last(first.Add(-time.Second)); !got.IsZero() {
		t.Errorf("got %v, which is before it was set", got)
	}
	if got := p.last(first.Add(70 * time.Hour)); !got.Equal(first) {
		t.Errorf("got %v, want %v", got, first)
	}
	if got := p.last(first.Add(10000 * time.Hour)); got.IsZero() || p.next(got).Sub(got) != 72*time.Hour {
		t.Errorf("got %v a year later", got)
	}
}

// Each refusal names the field and the way out.
func TestBadRecycles(t *testing.T) {
	h := func(n time.Duration) schemas.Duration { return schemas.Duration(n * time.Hour) }
	for field, tc := range map[string]struct {
		set  ops.Recycle
		says string
	}{
		"recycle.at":       {ops.Recycle{At: "3:30"}, "03:30"},
		"recycle.timeZone": {ops.Recycle{At: "03:30", TimeZone: "Europe/Berln"}, "Europe/Berlin"},
		"recycle.every":    {ops.Recycle{At: "03:30", Every: h(25)}, "48h"},
		"recycle.notice":   {ops.Recycle{At: "03:30", Notice: h(25)}, "24h"},
		"recycle.stagger":  {ops.Recycle{At: "03:30", Stagger: h(2)}, "1h"},
	} {
		_, err := compile(&tc.set)
		e, ok := errors.AsType[*schemas.Error](err)
		if !ok || e.Code != schemas.CodeInvalid || e.Field != field || !strings.Contains(e.Hint, tc.says) {
			t.Errorf("%s: got %+v", field, err)
		}
	}
	for _, bad := range []string{"24:00", "12:60", "noon", "03:30:00", " 3:30", "٠٣:٣٠"} {
		if _, err := compile(&ops.Recycle{At: bad}); err == nil {
			t.Errorf("%q is taken for a time of day", bad)
		}
	}
	for _, set := range []ops.Recycle{{At: "03:30", Every: h(12)}, {At: "03:30", Every: h(24 * 400)}, {At: "03:30", Notice: -1}, {At: "03:30", Stagger: -1}, {TimeZone: "Mars/Olympus"}} {
		if _, err := compile(&set); err == nil {
			t.Errorf("%+v is taken", set)
		}
	}
}
