package deployed_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/deployed"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// farm is a Drover in virtual time with a worker of deployed flows, and an activity that tells on which list it ran.
type farm struct {
	*drovertest.Env
	t    *testing.T
	conn *natsconn.Conn
	s    *store.Store
}

func virtually(t *testing.T, fn func(t *testing.T, f *farm)) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		e.Go(deployed.New(e.Client, &deployed.Options{Every: time.Second}))
		for _, list := range []string{deployed.DefaultList, "other", "third"} {
			a := e.Client.Activities(&activity.Options{Lists: []string{list}})
			activity.Register(a, "where", func(context.Context, any) (string, error) { return list, nil })
			e.Go(a)
		}
		fn(t, &farm{e, t, natsconn.Of(e.Client), store.Open(natsconn.Of(e.Client), subject.Namespace("default"))})
	})
}

func (f *farm) deploy(text string) string {
	f.t.Helper()
	d, err := flow.Parse("f.yaml", []byte(text), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	done, err := f.s.Deploy(f.t.Context(), store.Flow, d)
	if err != nil {
		f.t.Fatal(err)
	}
	return done.Version
}

func (f *farm) start(typ, id string, o drover.StartOptions) *drover.Run {
	f.t.Helper()
	o.ID = id
	run, err := f.Client.Start(f.t.Context(), typ, nil, &o)
	if err != nil {
		f.t.Fatal(err)
	}
	return run
}

func (f *farm) want(run *drover.Run, want string) {
	f.t.Helper()
	if out := f.Wait(run); out.Status != schemas.StatusCompleted || string(out.Result) != want {
		f.t.Errorf("%s: got %v with %s %s, want %s", run.ID, out.Status, out.Result, out.Details, want)
	}
}

// A flow is served within two looks of its deployment, and a start right after a deployment runs what was deployed.
func TestDeployedFlowsRun(t *testing.T) {
	virtually(t, func(t *testing.T, f *farm) {
		f.Sleep(10 * time.Second)
		f.deploy("name: f\nsteps: [return 0]\n")
		begin := time.Now()
		f.want(f.start("f", "first", drover.StartOptions{}), `"0"`)
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("the first run took %v, want 2 s at most", took)
		}
		for i := range 5 {
			f.deploy(fmt.Sprintf("name: f\nsteps: [return %d]\n", i))
			f.want(f.start("f", fmt.Sprint("run-", i), drover.StartOptions{}), fmt.Sprintf(`"%d"`, i))
		}
	})
}

// A run keeps its version, with the parts that are runs of their own, whatever is deployed meanwhile.
func TestRunsKeepTheirVersion(t *testing.T) {
	virtually(t, func(t *testing.T, f *farm) {
		const text = "name: f\nsteps:\n- sleep 1h\n- foreach n in 1..2 do return %d\n- return ${output}\n"
		v1 := f.deploy(fmt.Sprintf(text, 1))
		one := f.start("f", "one", drover.StartOptions{})
		f.Sleep(time.Minute)
		f.deploy(fmt.Sprintf(text, 2))
		two := f.start("f", "two", drover.StartOptions{})
		named := f.start("f", "named", drover.StartOptions{TypeVersion: v1})
		f.want(one, `["1","1"]`)
		f.want(two, `["2","2"]`)
		f.want(named, `["1","1"]`)
	})
}

func TestStartsOfWhatIsNotThere(t *testing.T) {
	virtually(t, func(t *testing.T, f *farm) {
		f.deploy("name: f\nsteps: [no-op]\n")
		for version, want := range map[string]string{
			strings.Repeat("0", 32): "has no version 000", "1.0": "of them (see which there are: drover flow show f)", "0000": "0 versions of the flow",
		} {
			out := f.Wait(f.start("f", "version "+version, drover.StartOptions{TypeVersion: version}))
			if out.Status != schemas.StatusFailed || out.Reason != "definition" || !strings.Contains(string(out.Details), want) {
				t.Errorf("%s: got %v with %s %s, want %q", version, out.Status, out.Reason, out.Details, want)
			}
		}
		key := "flow.f.current"
		_, rev, err := f.conn.KVGet(t.Context(), subject.Namespace("default").BucketFlows(), key)
		if err == nil {
			err = f.conn.KVDelete(t.Context(), subject.Namespace("default").BucketFlows(), key, rev)
		}
		if err != nil {
			t.Fatal(err)
		}
		if out := f.Wait(f.start("f", "deleted", drover.StartOptions{})); out.Reason != "definition" || !strings.Contains(string(out.Details), "drover flow deploy") {
			t.Errorf("got %v with %s %s, want that there is none", out.Status, out.Reason, out.Details)
		}
	})
}

// The list of an activity is that of its step, else that of the run, in its parts too, else main.
func TestLists(t *testing.T) {
	virtually(t, func(t *testing.T, f *farm) {
		f.deploy("name: f\nsteps:\n- activity where\n- let a = ${output}\n- activity where on third\n- let b = ${output}\n- foreach n in 1..1 do activity where\n- return ${a} ${b} ${output[0]}\n")
		f.want(f.start("f", "plain", drover.StartOptions{}), `"main third main"`)
		f.want(f.start("f", "other", drover.StartOptions{ActivityDefaults: &schemas.ActivityDefaults{List: "other"}}), `"other third other"`)
	})
}
