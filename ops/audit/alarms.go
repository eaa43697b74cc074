package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// readAlarms reads the alarms of a partition: all messages, in their order. A NATS node that was
// killed may have a message again that was deleted, and not know of it by its subject: to ask for
// the last one of each would not show it.
func (v *view) readAlarms(ctx context.Context, p int) error {
	v.alarms = map[uint64]armed{}
	err := v.a.o.Conn.Scan(ctx, v.a.ns.StreamAlarms(p),
		natsconn.ReadOptions{BytesPerSecond: natsconn.Leisurely}, func(s natsconn.Stored) error {
			_, wid, run, err := subject.ParseAlarm(s.Subject)
			var alarm schemas.Alarm
			if err != nil || schemas.Unmarshal(s.Data, &alarm) != nil {
				return nil // the timer worker makes it a dead letter
			}
			v.alarms[v.key(wid, run)] = armed{seq: s.Seq, due: alarm.Due}
			return nil
		})
	if err != nil {
		return fmt.Errorf("read the alarms of partition %d: %w", p, err)
	}
	if err := v.addLeaders(ctx, p); err != nil {
		return fmt.Errorf("the alarms of partition %d: %w", p, err)
	}
	v.armed += len(v.alarms)
	return nil
}

const (
	// mostSubjects is how many alarms a partition may have for its leader to be asked which: it
	// names them in one piece.
	mostSubjects = 100_000
	// mostLeaders bounds how many of them are asked for one by one; the next pass sees to the
	// others.
	mostLeaders = 1000
)

// addLeaders adds the alarms that the stream's leader has and that were not read. What was read is
// what one replica has, and the replicas are not alike for ever: in 2.15.2 a replica that is killed
// without its last syncs has again a message whose place another one of its subject had taken, if
// that was deleted since. Of one replica there is nothing to add.
func (v *view) addLeaders(ctx context.Context, p int) error {
	s, err := v.a.o.Conn.JetStream().Stream(ctx, v.a.ns.StreamAlarms(p))
	if err != nil {
		return err
	}
	if s.CachedInfo().Config.Replicas == 1 {
		return nil
	}
	return v.addSubjects(ctx, p)
}

func (v *view) addSubjects(ctx context.Context, p int) error {
	subjects, _, err := v.a.o.Conn.StreamSubjects(ctx, v.a.ns.StreamAlarms(p), ">", mostSubjects)
	if err != nil {
		return err
	}
	added := 0
	for _, subj := range subjects {
		_, wid, run, err := subject.ParseAlarm(subj)
		if err != nil || added == mostLeaders {
			continue
		}
		key := v.key(wid, run)
		if _, known := v.alarms[key]; known {
			continue
		}
		added++
		alarm, ok, err := v.lastAlarm(ctx, p, wid, run)
		if err != nil {
			return err
		}
		if ok {
			v.alarms[key] = alarm
		}
	}
	return nil
}

// namesOf are the runs of alarms, each read again: of one that is gone by now there is none. It
// ends at an error, of which it tells.
func (v *view) namesOf(
	ctx context.Context, p int, of []armed, failed *error,
) iter.Seq[schemas.Execution] {
	return func(yield func(schemas.Execution) bool) {
		for _, alarm := range of {
			s, err := v.a.o.Conn.GetSeq(ctx, v.a.ns.StreamAlarms(p), alarm.seq)
			if errors.Is(err, natsconn.ErrNotFound) {
				continue
			}
			if err != nil {
				*failed = fmt.Errorf("read alarm %d of partition %d: %w", alarm.seq, p, err)
				return
			}
			if _, wid, run, err := subject.ParseAlarm(s.Subject); err == nil &&
				!yield(schemas.Execution{WorkflowID: wid, Run: run}) {
				return
			}
		}
	}
}

// alarmOf is the alarm of a run. At the second look it is asked for by itself.
func (v *view) alarmOf(ctx context.Context, p int, wid, run string) (armed, bool, error) {
	if !v.second {
		found, ok := v.alarms[v.key(wid, run)]
		return found, ok, nil
	}
	return v.lastAlarm(ctx, p, wid, run)
}

// lastAlarm is the alarm of a run as the leader has it.
func (v *view) lastAlarm(ctx context.Context, p int, wid, run string) (armed, bool, error) {
	s, err := v.a.o.Conn.LastBySubject(ctx, v.a.ns.StreamAlarms(p), v.a.ns.Alarm(p, wid, run))
	if errors.Is(err, natsconn.ErrNotFound) {
		return armed{}, false, nil
	}
	var alarm schemas.Alarm
	if err == nil {
		err = schemas.Unmarshal(s.Data, &alarm)
	}
	if err != nil {
		return armed{}, false, fmt.Errorf("read the alarm of %s: %w", wid, err)
	}
	return armed{seq: s.Seq, due: alarm.Due}, true, nil
}
