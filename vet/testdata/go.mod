module shop

go 1.26

require (
	github.com/droverhq/drover v0.0.0
	github.com/google/uuid v0.0.0
	lib.example v0.0.0
)

replace (
	github.com/droverhq/drover => ./drover
	github.com/google/uuid => ./uuid
	lib.example => ./lib
)
