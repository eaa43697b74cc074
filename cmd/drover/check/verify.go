package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func VerifyCommand(a *cli.App) *cobra.Command {
	var idle bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check every history of the namespace against the rules",
		Long: `Read every history of the namespace and check it: numbering, order, pairing, times,
fences, and the hash chain that finds a flipped bit, a lost block or a reused sequence. Then check
that histories agree with one another: children with their parents, runs that continued as new
with their successors, replays with what they repeat, signals and cancel requests with who sent
them; and that the large payloads which they name are in the store. It reads from JetStream
directly, so that no server of Drover needs to run, and changes nothing. The exit code is 1 if a
rule is broken.

With --idle it also wants everything to be done that was decided: children started and their ends
reported, signals answered, child policies carried out. Use it when nothing is under way.

It holds about 1.5 KiB of memory for each workflow id of the namespace.`,
		Args: cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				return verifyNamespace(ctx, a, c, idle)
			})
		},
	}
	cmd.Flags().BoolVar(&idle, "idle", false,
		"nothing is under way: want everything to be done that was decided")
	return cmd
}

// Verification is what verify prints with --json.
type Verification struct {
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

func verifyNamespace(ctx context.Context, a *cli.App, c *drover.Client, idle bool) error {
	r := NewVerifier(c)
	if err := r.Read(ctx); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if len(r.partitions)+len(r.Violations) == 0 {
		return &drover.Error{
			Op: "verify", Code: schemas.CodeNotFound,
			Err:  fmt.Errorf("there is no namespace %q: it has no history stream", r.Namespace),
			Hint: cli.HintNoNamespace,
		}
	}
	v := r.judge(idle)
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
	return fmt.Errorf("verify: %s in %s: keep a copy of the store before anything else",
		cli.Counted(len(v.Violations), "violation", "violations"),
		cli.Counted(len(runs), "run", "runs"))
}

func (v *Verification) show(a *cli.App) error {
	if a.JSON {
		return a.Document(v)
	}
	for _, broken := range v.Violations {
		if err := a.Say("%s", cli.Sentence(broken.String())); err != nil {
			return err
		}
	}
	verdict := "no rule is broken"
	if !v.OK {
		verdict = fmt.Sprintf("%d VIOLATIONS", len(v.Violations))
	}
	return a.Say("namespace %s: %s in %s of %s (%d open) on %s: %s", v.Namespace,
		cli.Counted(v.Events, "event", "events"), cli.Counted(v.Records, "record", "records"),
		cli.Counted(v.Runs, "run", "runs"), v.Open,
		cli.Counted(v.Partitions, "partition", "partitions"), verdict)
}

// verifier reads the history streams of a namespace.
type verifier struct {
	Verification
	conn       *natsconn.Conn
	ns         subject.Namespace
	checker    *checker.Namespace
	partitions []*partitionCheck
	Payloads   payloadCheck
}

// NewVerifier makes a verifier of the client's namespace.
func NewVerifier(c *drover.Client) *verifier {
	conn, ns := natsconn.Of(c), subject.Namespace(c.Namespace())
	return &verifier{
		Verification: Verification{Namespace: c.Namespace(), Violations: []checker.Violation{}},
		conn:         conn, ns: ns, checker: checker.NewNamespace(),
		// it is only read
		Payloads: payloadCheck{conn: conn, store: payloads.NewStore(conn, ns, nil)},
	}
}

// Read reads every stream, and then again what was written meanwhile: each was read at another
// moment, and only what is in the first reading is judged ([checker.Namespace.Seal]).
func (r *verifier) Read(ctx context.Context) error {
	if err := r.Payloads.list(ctx); err != nil {
		return err
	}
	for n, all, known := 0, 0, false; ; n++ {
		p := &partitionCheck{v: r, n: n, replays: map[string]string{}}
		err := p.read(ctx)
		switch {
		case err == nil:
			r.partitions = append(r.partitions, p)
			continue
		case !errors.Is(err, natsconn.ErrNoStream):
			return err
		case !known: // after the last one, or a stream is gone
			if all, err = r.count(ctx); err != nil {
				return err
			}
			known = true
		}
		if n >= all {
			break
		}
		p.broken(checker.RuleRecord, "", "", 0,
			"the stream %s is gone, with every history of partition %d", r.ns.StreamHistory(n), n)
	}
	r.checker.Seal()
	for _, p := range r.partitions {
		if err := p.read(ctx); err != nil {
			return err
		}
		if err := p.unreadable(ctx); err != nil {
			return err
		}
	}
	lost, err := r.Payloads.Missing(ctx)
	r.add(lost...)
	return err
}

// count is how many partitions the namespace says that it has, 0 if it does not say.
func (r *verifier) count(ctx context.Context) (int, error) {
	space, err := topology.Lookup(ctx, r.conn, r.ns)
	if errors.Is(err, topology.ErrNoNamespace) || errors.Is(err, topology.ErrConflict) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return space.Partitions, nil
}

// judge adds what can only be said at the end.
func (r *verifier) judge(idle bool) *Verification {
	o := checker.EndOptions{Quiet: idle}
	for _, p := range r.partitions {
		o.Removed = o.Removed || p.removed
	}
	r.add(r.checker.End(o)...)
	n := r.checker.Counts()
	r.Partitions, r.Workflows, r.Runs, r.Open, r.Records, r.Events = len(r.partitions), n.Workflows,
		n.Runs, n.Open, n.Records, n.Events
	r.OK = len(r.Violations) == 0
	return &r.Verification
}

func (v *Verification) add(found ...checker.Violation) {
	v.Violations = append(v.Violations, found...)
}

// partitionCheck is the reading of one history stream.
type partitionCheck struct {
	v *verifier
	n int
	// last is the sequence up to which the stream is read, removed that numbers below it are
	// missing: histories were removed, by retention or by an operator.
	last    uint64
	removed bool
	// fence is the sequence of the latest fence record, 0 until one was seen. A record after it may
	// bear an older fence: a write that was on its way when its owner was replaced, and that the
	// run's own sequence let through because it is the run's true next record (P-2). Within one run
	// fences never fall; the checker sees to that.
	fence uint64
	claim uint64
	// replays is what the replays among the runs repeat, by run.
	replays map[string]string
}

// read reads on to the end that the stream has now.
func (p *partitionCheck) read(ctx context.Context) error {
	stream, o := p.v.ns.StreamHistory(p.n), natsconn.ReadOptions{StartSeq: p.last + 1}
	_, end, err := p.v.conn.StreamState(ctx, stream)
	if err != nil {
		return fmt.Errorf("partition %d: %w", p.n, err)
	}
	if end <= p.last {
		return nil
	}
	err = p.v.conn.Scan(ctx, stream, o, func(m natsconn.Stored) error {
		p.removed = p.removed || m.Seq != p.last+1
		p.last = m.Seq
		p.message(m)
		return nil
	})
	if err != nil {
		return fmt.Errorf("partition %d: %w", p.n, err)
	}
	p.removed, p.last = p.removed || p.last < end, max(p.last, end)
	return nil
}

func (p *partitionCheck) message(m natsconn.Stored) {
	if m.Subject == p.v.ns.Fence(p.n) {
		p.fenceRecord(m)
		return
	}
	part, id, run, err := subject.ParseHistory(m.Subject)
	if err != nil || part != p.n {
		p.broken(checker.RuleRecord, "", "", 0, "message %d is on subject %q, which no history has",
			m.Seq, m.Subject)
		return
	}
	var r schemas.Record
	if err := schemas.Unmarshal(m.Data, &r); err != nil {
		p.broken(checker.RuleRecord, id, run, 0, "record %d cannot be read: %v", m.Seq, err)
		return
	}
	if r.WorkflowID != id || r.Run != run {
		p.broken(checker.RuleRecord, id, run, r.First,
			"record %d says that it is of workflow %q run %s", m.Seq, r.WorkflowID, r.Run)
		return
	}
	if p.fence != 0 && r.Fence > p.fence {
		p.broken(checker.RuleFence, id, run, r.First,
			"record %d has fence %d, which is not written yet; the latest is %d",
			m.Seq, r.Fence, p.fence)
	}
	p.replayOf(&m, &r)
	p.v.Payloads.note(p.v.ns.StreamHistory(p.n), &m, &r)
	p.v.add(p.v.checker.Record(&r, m.Data, schemas.At(m.Time))...)
}

// replayOf checks the link of a replay in the other direction: a run that was replayed is told so
// by the headers of the run that repeats it, so these have to say what its first event says.
func (p *partitionCheck) replayOf(m *natsconn.Stored, r *schemas.Record) {
	if r.First == 1 && len(r.Events) > 0 {
		if a, ok := r.Events[0].Attributes.(*schemas.WorkflowStarted); ok && a.Replays != nil {
			p.replays[r.Run] = a.Replays.Run
		}
	}
	line, err := runs.ReadLine(*m)
	if err != nil {
		return // brokers pass over it, too
	}
	said := ""
	if line.Replays != nil {
		said = line.Replays.Run
	}
	if want := p.replays[r.Run]; said != want {
		p.broken(checker.RuleReplay, r.WorkflowID, r.Run, r.First,
			"the headers of record %d say that the run replays run %q, its first event says run %q",
			m.Seq, said, want)
	}
}

// fenceRecord checks that claims only grow: an owner never fences in the name of a claim that
// another one followed.
func (p *partitionCheck) fenceRecord(m natsconn.Stored) {
	var f schemas.Fence
	if err := schemas.Unmarshal(m.Data, &f); err != nil {
		p.broken(checker.RuleFence, "", "", 0, "fence %d of partition %d cannot be read: %v",
			m.Seq, p.n, err)
		return
	}
	if f.Claim < p.claim {
		p.broken(checker.RuleFence, "", "", 0,
			"fence %d of partition %d is for claim %d of %s, after one for claim %d",
			m.Seq, p.n, f.Claim, f.Owner, p.claim)
	}
	p.fence, p.claim = m.Seq, max(f.Claim, p.claim)
}

func (p *partitionCheck) broken(rule, id, run string, event int64, format string, args ...any) {
	p.v.add(checker.Violation{
		Rule: rule, WorkflowID: id, Run: run, EventID: event, Detail: fmt.Sprintf(format, args...),
	})
}
