package calendar

import (
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	shortest = schemas.Duration(time.Second)
	longest  = schemas.Duration(100 * 365 * 24 * time.Hour)
)

// interval is the instants offset + n * every after the Unix epoch. Both are nanoseconds.
type interval struct{ every, offset int64 }

func compileInterval(i ops.ScheduleInterval) (interval, *schemas.Error) {
	wrong := func(field, format string, args ...any) *schemas.Error {
		return schemas.Errorf(schemas.CodeInvalid, format, args...).InField(field)
	}
	switch {
	case i.Every == 0:
		return interval{}, wrong("every", "an interval of zero has no times").
			WithHint(`say how far apart the times are: {"every": "5m"}`)
	case i.Every < shortest:
		return interval{}, wrong("every", "an interval of %v is shorter than a second", i.Every).
			WithHint("use a second or more")
	case i.Every > longest:
		return interval{}, wrong("every", "an interval of %v is longer than 100 years", i.Every).
			WithHint("use at for single times")
	case i.Every.Std()%time.Millisecond != 0:
		return interval{}, wrong("every", "an interval of %v is not in whole milliseconds",
			i.Every).
			WithHint("round it")
	case i.Offset < 0 || i.Offset >= i.Every:
		return interval{}, wrong("offset", "an offset of %v is not from 0 to less than every, %v",
			i.Offset, i.Every).
			WithHint("the times are offset + n * every after the Unix epoch, for each whole n: " +
				"take whole intervals off the offset")
	case i.Offset.Std()%time.Millisecond != 0:
		return interval{}, wrong("offset", "an offset of %v is not in whole milliseconds",
			i.Offset).
			WithHint("round it")
	}
	return interval{every: int64(i.Every), offset: int64(i.Offset)}, nil
}

// after returns the first slot after an instant. ok is false beyond what a [schemas.Timestamp] can
// hold.
func (i interval) after(instant time.Time) (slot time.Time, ok bool) {
	n := instant.UnixNano()
	next := (floorDiv(n-i.offset, i.every)+1)*i.every + i.offset
	return time.Unix(0, next), next > n
}
