package subject

// MaxPartitions is how many partitions a namespace may have: each costs three streams.
const MaxPartitions = 256

const (
	fnvOffset = 2166136261
	fnvPrime  = 16777619
)

// Partition gives the partition of a workflow id among partitions 0 … partitions-1: FNV-1a (32
// bits) of the id's token, modulo the number. It is the function of the server's {{partition(P,n)}}
// transform on that token. With fewer than two partitions the answer is 0. It does not allocate.
func Partition(workflowID string, partitions int) int {
	if partitions < 2 {
		return 0
	}
	h := uint32(fnvOffset)
	add := func(c byte) { h = (h ^ uint32(c)) * fnvPrime }
	for i := range len(workflowID) {
		if c := workflowID[i]; plain[c] {
			add(c)
		} else {
			add('%')
			add(upperHex[c>>4])
			add(upperHex[c&15])
		}
	}
	return int(h % uint32(partitions))
}
