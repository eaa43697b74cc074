package workflows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas/ops"
)

// indexWait is how long the index may take to read what was written before a command.
const indexWait = 5 * time.Second

// searchFlags say what list and count look for.
type searchFlags struct {
	cli.FilterFlags
	all, scan bool
}

func (f *searchFlags) register(cmd *cobra.Command) {
	f.Register(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "children, too")
	cmd.Flags().BoolVar(&f.scan, "scan", false,
		"read the histories instead of the index; no QUERY, and in no order")
}

// search is what list and count look for, and where.
type search struct {
	text  string       // the query
	query *query.Query // as it was understood
	// condition is what the flags ask for beside it, and o the same for a scan.
	condition string
	o         drover.ListOptions
	top, scan bool // children are left out; the histories are read

	index ops.IndexState // of the last answer
	late  bool           // it had not read in time what was written before
}

// search reads the flags and the words of a query.
func (f *searchFlags) search(cmd *cobra.Command, words []string) (*search, error) {
	o, err := f.Options(cmd)
	if err != nil {
		return nil, err
	}
	s := &search{
		text: strings.Join(words, " "), condition: f.Condition(), o: o,
		top: topLevel(o, f.all), scan: f.scan,
	}
	if s.scan && s.text != "" {
		return nil, cli.Usage(
			cmd,
			errors.New("--scan takes no QUERY: use the flags, or leave it out"),
		)
	}
	if s.query, err = query.Parse(s.text, time.Now()); err != nil {
		return nil, cli.Usage(cmd, fmt.Errorf("the query cannot be read: %w", err))
	}
	s.top = s.top && !namesRuns(s.query.Where)
	return s, nil
}

// namesRuns tells whether a condition is about certain runs, or about the children of some.
func namesRuns(e query.Expr) bool {
	switch e := e.(type) {
	case query.And:
		for _, term := range e {
			if namesRuns(term) {
				return true
			}
		}
	case query.Or:
		for _, term := range e {
			if namesRuns(term) {
				return true
			}
		}
	case *query.Condition:
		switch e.Field.Column {
		case query.ColumnParent, query.ColumnRun, query.ColumnFirst:
			return true
		case query.ColumnID:
			return e.Op == query.In && !e.Not
		}
	}
	return false
}

// options are those of a question to the index.
func (s *search) options(top bool, limit int) *drover.QueryOptions {
	began := time.Now()
	o := &drover.QueryOptions{Filter: s.condition, Limit: limit, Wait: indexWait}
	if top {
		o.Filter = strings.TrimPrefix(o.Filter+" AND parent IS NULL", " AND ")
	}
	o.Index = func(i ops.IndexState) {
		s.index, s.late = i, s.late || i.Lag > 0 && time.Since(began) >= indexWait
		began = time.Now()
	}
	return o
}

// find yields what matches; limit is 0 for all.
func (s *search) find(
	ctx context.Context, c *drover.Client, top bool, limit int,
) iter.Seq2[ops.FoundRun, error] {
	return func(yield func(ops.FoundRun, error) bool) {
		if s.scan {
			o := s.o
			o.TopLevel, o.Limit = top, limit
			for e, err := range c.List(ctx, o) {
				if !yield(ops.FoundRun{ExecutionInfo: e}, err) {
					return
				}
			}
			return
		}
		for r, err := range c.Query(ctx, s.text, s.options(top, limit)) {
			if !yield(r, orScan(err)) {
				return
			}
		}
	}
}

// childrenMatch tells whether children would match that are left out.
func (s *search) childrenMatch(ctx context.Context, c *drover.Client) (bool, error) {
	if !s.top {
		return false, nil
	}
	for _, err := range s.find(ctx, c, false, 1) {
		return err == nil, err
	}
	return false, nil
}

// sayState says what an answer of the index does not have.
func (s *search) sayState(w io.Writer) {
	if s.index.Building > 0 {
		fmt.Fprintf(w, "the index is being built, %.0f%% of it is there: more may match\n",
			100*s.index.Building)
	} else if s.late {
		fmt.Fprintf(w, "the index has not read %s yet\n",
			cli.Counted(int(s.index.Lag), "record", "records"))
	}
	if s.index.Gone > 0 {
		fmt.Fprintf(
			w,
			"the index has room for no more: %s left, the oldest first: --scan has them\n",
			cli.Counted(int(s.index.Gone), "closed run has", "closed runs have"),
		)
	}
}

// orScan says what else there is where no index answers.
func orScan(err error) error {
	e, ok := errors.AsType[*drover.Error](err)
	if !ok || !cli.IsAny(err, drover.ErrUnavailable, drover.ErrUnsupported) {
		return err
	}
	say := *e
	say.Hint = "the index is kept by servers with the role ops; --scan reads the histories instead"
	if e.Hint != "" {
		say.Hint = e.Hint + "; " + say.Hint
	}
	return &say
}
