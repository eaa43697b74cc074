module github.com/droverhq/drover

go 1.26
