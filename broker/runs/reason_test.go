package runs

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// A reason is one line of at most 120 bytes and whole runes, of failed runs alone.
func TestReasons(t *testing.T) {
	long := strings.Repeat("x", 119)
	for given, want := range map[string]string{
		"":                   "",
		"no stock":           "no stock",
		"two\nlines\r\nmore": "two lines  more",
		long + "é":           long,
		long + "yz":          long + "y",
		long[:118] + "é":     long[:118] + "é",
		long[:118] + "é\n":   long[:118] + "é",
		long[:117] + "世界":    long[:117] + "世",
	} {
		e := &schemas.Event{Attributes: &schemas.WorkflowFailed{Reason: given}}
		if got := Reason(e); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
	end := &schemas.Event{Attributes: &schemas.WorkflowTerminated{Reason: "enough"}}
	if got := Reason(end) + Reason(nil); got != "" {
		t.Errorf("got %q of a run that has not failed, want nothing", got)
	}
}

// What stands where the last record of a run is said to stand must be a record of the run.
func TestReasonOfWhatIsNotThere(t *testing.T) {
	r := namespace(t, 1)
	foreign := put(t, r, 0, "w", "r", nil, []byte("{}"))
	for name, seq := range map[string]uint64{"no record": foreign, "nothing": foreign + 1} {
		if got, err := r.ReasonAt(t.Context(), 0, "w", "r", seq); err == nil {
			t.Errorf("%s: got %q and no error", name, got)
		}
	}
	if got, err := r.ReasonAt(t.Context(), 0, "other", "r", foreign); err == nil {
		t.Errorf("of another run: got %q and no error", got)
	}
}
