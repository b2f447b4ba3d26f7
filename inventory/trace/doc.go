// Package trace reads how busy the VMs of real fleets were, from the formats in which such
// traces are published:
//
//	Bitbrains   a file for each VM, or a folder of them: "Timestamp [ms];  CPU cores; …"
//	Azure       the folder of a public data set, V1 or V2: vmtable.csv, and the readings
//	            vm_cpu_readings-file-*.csv; also compressed with gzip
//	PlanetLab   a folder with a file for each VM, a percentage a line, five minutes apart; or
//	            one CSV file with a line for each VM: vm,t0,t300,…
//	OpenDC      a folder with tasks.parquet and fragments.parquet
//
// [Read] tells the format from the content. Files are streamed: they may be far larger than
// the memory, of which [MaxPoints] says how much is needed. What is wrong with a file is
// [document.Problems] with file and line, or row. Gaps, loads above 100 % and times in
// another unit than the file says are warnings, and what was made of them is said.
//
// No public trace says how fast memory changes. [Proxy] makes a workload of a load: a
// stated assumption, not a measurement.
package trace
