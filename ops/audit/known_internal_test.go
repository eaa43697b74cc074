package audit

import (
	"fmt"
	"testing"

	"github.com/droverhq/drover/schemas"
	"github.com/sirupsen/logrus"
)

// Of a kind with more findings than are listed, each pass may list others; those that it remembers stay few.
func TestFewAreRemembered(t *testing.T) {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	const most = 10
	a := &Auditor{o: Options{Logger: log, MostOfKind: most}, known: map[string]Finding{}}
	for pass := range 100 {
		r := &Report{Full: true, unseen: newUnseen(), Time: schemas.Timestamp(pass)}
		for i := range most + 5 {
			r.add(Finding{Kind: KindWaitsForNothing, Severity: Notice, WorkflowID: fmt.Sprint("o", pass, "-", i), Text: "waits"}, most)
		}
		a.tell(r)
	}
	if n := len(a.known); n > 2*most {
		t.Errorf("%d findings are remembered after 100 passes that listed %d each, want %d at most", n, most, 2*most)
	}
}
