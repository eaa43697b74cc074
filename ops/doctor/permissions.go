package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/ops/permissions"
)

// asked are the roles whose verbs are tried, the mightiest first.
var asked = []permissions.Role{permissions.Operator, permissions.Client, permissions.Viewer}

// permissions finds out which verbs of the API this user may ask.
func (e *examination) permissions(ctx context.Context) bool {
	verbs := permissions.Verbs(permissions.Operator)
	refused := make([]bool, len(verbs))
	var wg sync.WaitGroup
	for i, verb := range verbs {
		wg.Go(func() {
			_, err := e.conn.Request(ctx, e.ns.API(verb), nil, nil)
			r, ok := errors.AsType[*natsconn.RefusedError](err)
			refused[i] = ok && !r.Subscribe
		})
	}
	wg.Wait()
	var not []string
	for i, verb := range verbs {
		if refused[i] {
			not = append(not, verb)
		}
	}
	e.add(judgePermissions(not))
	return true
}

func judgePermissions(refused []string) Finding {
	var may []string
	for _, role := range asked {
		lacks := slices.ContainsFunc(permissions.Verbs(role),
			func(v string) bool { return slices.Contains(refused, v) })
		if !lacks && !slices.ContainsFunc(may,
			func(m string) bool { return m == string(permissions.Operator) }) {
			may = append(may, string(role))
		}
	}
	switch {
	case len(may) > 0 && len(refused) > 0:
		return Finding{
			Status: OK, Check: checkPermissions,
			Found: fmt.Sprintf("this user may do what a %s does, and not: %s",
				strings.Join(may, " and a "), strings.Join(refused, ", ")),
		}
	case len(may) > 0:
		return Finding{
			Status: OK, Check: checkPermissions,
			Found: "this user may ask everything that an operator does",
		}
	}
	return Finding{
		Warn, checkPermissions, "this user may not ask: " + strings.Join(refused, ", "),
		"\"drover auth template\" prints what each role needs: operator, viewer, client",
	}
}
