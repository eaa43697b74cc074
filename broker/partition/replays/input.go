package replays

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/schemas"
)

// ownInput gives the new run an input of its own: a large one of the old run goes with that, and is
// copied (P-14).
func (rs *Replays) ownInput(ctx context.Context, y *replay) error {
	if len(y.input) == 0 {
		y.input = y.old.Start.Input
		ref, ok := y.input.Ref()
		if !ok {
			return nil
		}
		w, cursor := rs.Env.Store.NewWriter(), ""
		for {
			data, next, err := rs.Env.Store.Read(ctx, ref.Object, cursor, rs.Env.Store.ChunkBytes())
			if err == nil {
				err = w.Write(ctx, data)
			}
			if err != nil {
				return errors.Join(fmt.Errorf("copy the input of run %s: %w", y.old.Run, err),
					w.Abort(ctx))
			}
			if cursor = next; next == "" {
				break
			}
		}
		own, err := w.Commit(ctx, "replay-"+y.run)
		if err == nil {
			y.input = schemas.RefPayload(own)
		}
		return err
	}
	if len(y.input) <= payloads.InlineLimit(rs.Env.MaxPayload()) {
		return nil
	}
	ref, err := rs.Env.Store.Put(ctx, "replay-"+y.run, y.input)
	if err == nil {
		y.input = schemas.RefPayload(ref)
	}
	return err
}
