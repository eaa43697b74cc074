package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

func verifyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check every history of the namespace against the rules",
		Long: `Read every history of the namespace and check it: numbering, order, pairing, times, fences, and the hash chain that
finds a flipped bit, a lost block or a reused sequence. It reads from JetStream directly, so that no server of Drover
needs to run, and changes nothing. The exit code is 1 if a rule is broken.

It holds about one KiB of memory for each workflow id of a partition.`,
		Args: argNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.client(cmd, a.verify)
		},
	}
}

// verification is what verify prints with --json.
type verification struct {
	Namespace  string              `json:"namespace"`
	OK         bool                `json:"ok"`
	Partitions int                 `json:"partitions"`
	Workflows  int                 `json:"workflows"`
	Runs       int                 `json:"runs"`
	Open       int                 `json:"open"`
	Records    int                 `json:"records"`
	Events     int                 `json:"events"`
	Violations []checker.Violation `json:"violations"`
}

func (a *app) verify(ctx context.Context, c *drover.Client) error {
	v := verification{Namespace: c.Namespace(), Violations: []checker.Violation{}}
	for ; ; v.Partitions++ {
		err := v.partition(ctx, c.Conn(), v.Partitions)
		if errors.Is(err, post.ErrNoStream) {
			break
		}
		if err != nil {
			return fmt.Errorf("verify: partition %d: %w", v.Partitions, err)
		}
	}
	if v.Partitions == 0 {
		return &drover.Error{
			Op: "verify", Code: schemas.CodeNotFound, Err: fmt.Errorf("there is no namespace %q: it has no history stream", v.Namespace),
			Hint: "check --namespace and --nats; a server makes the namespace when it starts",
		}
	}
	v.OK = len(v.Violations) == 0
	if err := v.show(a); err != nil {
		return err
	}
	if v.OK {
		return nil
	}
	runs := map[string]bool{}
	for _, broken := range v.Violations {
		runs[broken.WorkflowID+"\x00"+broken.Run] = true
	}
	return fmt.Errorf("verify: %d violations in %d runs: keep a copy of the store before anything else", len(v.Violations), len(runs))
}

func (v *verification) show(a *app) error {
	if a.json {
		return a.document(v)
	}
	for _, broken := range v.Violations {
		if err := a.say("%s", sentence(broken.String())); err != nil {
			return err
		}
	}
	verdict := "no rule is broken"
	if !v.OK {
		verdict = fmt.Sprintf("%d VIOLATIONS", len(v.Violations))
	}
	return a.say("namespace %s: %d events in %d records of %d runs (%d open) on %d partitions: %s",
		v.Namespace, v.Events, v.Records, v.Runs, v.Open, v.Partitions, verdict)
}

// partition checks one history stream.
func (v *verification) partition(ctx context.Context, conn *post.Conn, n int) error {
	p := partitionCheck{v: v, ns: subject.Namespace(v.Namespace), n: n, ids: map[string]*watched{}}
	err := conn.Scan(ctx, p.ns.StreamHistory(n), post.ReadOptions{FilterSubjects: []string{p.ns.AllHistory(n)}}, func(m post.Stored) error {
		p.message(m)
		return nil
	})
	if err != nil {
		return err
	}
	v.Workflows += len(p.ids)
	for _, id := range slices.Sorted(maps.Keys(p.ids)) {
		w := p.ids[id]
		v.add(w.checker.End()...)
		if !w.closed {
			v.Open++
		}
	}
	return nil
}

func (v *verification) add(found ...checker.Violation) {
	v.Violations = append(v.Violations, found...)
}

// partitionCheck is the reading of one history stream.
type partitionCheck struct {
	v  *verification
	ns subject.Namespace
	n  int
	// fence is the sequence of the latest fence record, 0 until one was seen. A record behind it may bear an older fence: a
	// write that was on its way when its owner was replaced, and that the run's own sequence let through because it is
	// the run's true next record (P-2). Within one run fences never fall; the checker sees to that.
	fence uint64
	claim uint64
	ids   map[string]*watched
}

// watched is a workflow id.
type watched struct {
	checker *checker.Workflow
	run     string // the latest run
	closed  bool   // it has ended
}

func (p *partitionCheck) message(m post.Stored) {
	if m.Subject == p.ns.Fence(p.n) {
		p.fenceRecord(m)
		return
	}
	part, id, run, err := subject.ParseHistory(m.Subject)
	if err != nil || part != p.n {
		p.broken(checker.RuleRecord, "", "", 0, "message %d is on subject %q, which no history has", m.Seq, m.Subject)
		return
	}
	var r schemas.Record
	if err := schemas.Unmarshal(m.Data, &r); err != nil {
		p.broken(checker.RuleRecord, id, run, 0, "record %d cannot be read: %v", m.Seq, err)
		return
	}
	if r.WorkflowID != id || r.Run != run {
		p.broken(checker.RuleRecord, id, run, r.First, "record %d says that it is of workflow %q run %s", m.Seq, r.WorkflowID, r.Run)
		return
	}
	if p.fence != 0 && r.Fence > p.fence {
		p.broken(checker.RuleFence, id, run, r.First, "record %d has fence %d, which is not written yet; the latest is %d", m.Seq, r.Fence, p.fence)
	}
	w := p.ids[id]
	if w == nil {
		w = &watched{checker: checker.NewWorkflow(id)}
		p.ids[id] = w
	}
	if w.run != run {
		w.run, w.closed = run, false
		p.v.Runs++
	}
	p.v.Records++
	p.v.Events += len(r.Events)
	if n := len(r.Events); n > 0 && r.Events[n-1].Type().Closes() {
		w.closed = true
	}
	p.v.add(w.checker.Record(&r, m.Data, schemas.At(m.Time))...)
}

// fenceRecord checks that claims only grow: an owner never fences in the name of a claim that another one followed.
func (p *partitionCheck) fenceRecord(m post.Stored) {
	var f schemas.Fence
	if err := schemas.Unmarshal(m.Data, &f); err != nil {
		p.broken(checker.RuleFence, "", "", 0, "fence %d of partition %d cannot be read: %v", m.Seq, p.n, err)
		return
	}
	if f.Claim < p.claim {
		p.broken(checker.RuleFence, "", "", 0, "fence %d of partition %d is for claim %d of %s, behind one for claim %d", m.Seq, p.n, f.Claim, f.Owner, p.claim)
	}
	p.fence, p.claim = m.Seq, max(f.Claim, p.claim)
}

func (p *partitionCheck) broken(rule, id, run string, event int64, format string, args ...any) {
	p.v.add(checker.Violation{Rule: rule, WorkflowID: id, Run: run, EventID: event, Detail: fmt.Sprintf(format, args...)})
}
