package timers

// fences are those of the owners who have armed alarms, by numbers: a partition has had few owners
// while one worker held its alarms, and an alarm with a number takes less than one with a fence.
// Number 0 is a fence that is not known. So is each that comes when there are no numbers left:
// those alarms are rung by way of the inbox.
type fences struct {
	all     []uint64 // by number, less one
	numbers map[uint64]uint64
}

// mostFences is how many numbers there are above the sequence of an alarm.
const mostFences = 1<<(64-seqBits) - 1

// number is that of a fence.
func (f *fences) number(fence uint64) uint64 {
	n, known := f.numbers[fence]
	if known || fence == 0 || len(f.all) == mostFences {
		return n
	}
	if f.numbers == nil {
		f.numbers = map[uint64]uint64{}
	}
	f.all = append(f.all, fence)
	n = uint64(len(f.all))
	f.numbers[fence] = n
	return n
}

// of is the fence of a number.
func (f *fences) of(number uint64) uint64 {
	if number == 0 {
		return 0
	}
	return f.all[number-1]
}
