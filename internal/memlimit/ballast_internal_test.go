package memlimit

import "testing"

func TestBallastIsForWhoHasNotDecided(t *testing.T) {
	for _, tc := range []struct {
		environment map[string]string
		want        int
	}{
		{nil, ballastSize},
		{map[string]string{"GOGC": "100"}, 0},
		{map[string]string{"GOMEMLIMIT": "64MiB"}, 0},
	} {
		if got := ballastFor(func(name string) string { return tc.environment[name] }); got != tc.want {
			t.Errorf("with %v: got %d bytes, want %d", tc.environment, got, tc.want)
		}
	}
}
