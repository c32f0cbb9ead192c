// Neural networks in Go, with its standard library alone: 32-bit floats, goroutines for the threads.
//
// Each output unit has its own row of weights: forward is a dot product, the way back and the update
// are additions of a row. The rows (or, for the way back, the inputs) are shared out to goroutines.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

type description struct {
	Kind, Name string
	Inputs     []int
	Bias       *float64
}

type request struct {
	Do                       string
	Phase, Loss, Optimiser   string
	Backend, Unit, Precision string
	Batch, Threads           int
	Layers                   []description
	Settings                 map[string]float64
	Weights, Data            string
	Iterations, Steps, Most  int
	Warm                     bool
	Samples                  [][2]interface{}
}

type layer struct {
	name            string
	inputs, outputs int
	weight          []float32 // [outputs][inputs]
	bias            []float32
	activation      string
	y, dz, dx       []float32 // [batch][outputs], the same, [batch][inputs]
}

type network struct {
	request
	layers    []*layer
	x, target []float32 // all batches
	label     []float32 // or, for cross-entropy, the class of each sample
	batches   int
	place     int
	iteration int64 // nanoseconds of one, in the last run
	loss      float64
}

// shareOut calls work for parts of 0 … count, as many at once as there are threads.
func (n *network) shareOut(count, cost int, work func(from, to int)) {
	const worthIt = 100000 // multiplications, below which starting goroutines costs more
	if n.Threads < 2 || count*cost < worthIt {
		work(0, count)
		return
	}
	var group sync.WaitGroup
	for t := 0; t < n.Threads; t++ {
		from, to := count*t/n.Threads, count*(t+1)/n.Threads
		group.Add(1)
		go func() {
			work(from, to)
			group.Done()
		}()
	}
	group.Wait()
}

func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

func add(to, row []float32, by float32) {
	row = row[:len(to)]
	for i := range to {
		to[i] += by * row[i]
	}
}

func (l *layer) activate(v float32) float32 {
	switch l.activation {
	case "sigmoid":
		return float32(1 / (1 + math.Exp(-float64(v))))
	case "relu":
		if v < 0 {
			return 0
		}
	}
	return v
}

func (l *layer) slope(y float32) float32 {
	switch l.activation {
	case "sigmoid":
		return y * (1 - y)
	case "relu":
		if y <= 0 {
			return 0
		}
	}
	return 1
}

func (n *network) forward(batch int) []float32 {
	width := n.layers[0].inputs
	x := n.x[batch*n.Batch*width : (batch+1)*n.Batch*width]
	for _, l := range n.layers {
		n.shareOut(l.outputs, l.inputs*n.Batch, func(from, to int) {
			for j := from; j < to; j++ {
				row := l.weight[j*l.inputs : (j+1)*l.inputs]
				for b := 0; b < n.Batch; b++ {
					l.y[b*l.outputs+j] = l.activate(dot(row, x[b*l.inputs:(b+1)*l.inputs]) + l.bias[j])
				}
			}
		})
		x = l.y
	}
	if n.Loss == "cross_entropy" {
		width := len(x) / n.Batch
		for b := 0; b < n.Batch; b++ {
			softmax(x[b*width : (b+1)*width])
		}
	}
	return x
}

func softmax(y []float32) {
	most, sum := y[0], 0.0
	for _, v := range y {
		if v > most {
			most = v
		}
	}
	for i, v := range y {
		e := math.Exp(float64(v - most))
		y[i] = float32(e)
		sum += e
	}
	for i := range y {
		y[i] = float32(float64(y[i]) / sum)
	}
}

// compare sets the loss and its slopes by what the last layer gave.
func (n *network) compare(batch int, y, dy []float32) {
	n.loss = 0
	if n.Loss == "cross_entropy" {
		width := len(y) / n.Batch
		for i, p := range y {
			dy[i] = p / float32(n.Batch)
		}
		for b, class := range n.label[batch*n.Batch : (batch+1)*n.Batch] {
			i := b*width + int(class)
			n.loss -= math.Log(float64(y[i])) / float64(n.Batch)
			dy[i] = (y[i] - 1) / float32(n.Batch)
		}
		return
	}
	for i, t := range n.target[batch*len(y) : (batch+1)*len(y)] {
		d := y[i] - t
		n.loss += float64(d) * float64(d) / float64(len(y))
		dy[i] = 2 * d / float32(len(y))
	}
}

func (n *network) train(batch int) {
	y := n.forward(batch)
	dy := n.layers[len(n.layers)-1].dz
	n.compare(batch, y, dy)
	for k := len(n.layers) - 1; k >= 0; k-- {
		l := n.layers[k]
		for i := range l.dz {
			l.dz[i] = dy[i] * l.slope(l.y[i])
		}
		var x []float32
		if k == 0 {
			x = n.x[batch*n.Batch*l.inputs:]
		} else {
			x = n.layers[k-1].y
			n.shareOut(l.inputs, l.outputs*n.Batch, func(from, to int) { n.back(l, from, to) })
			dy = l.dx
		}
		n.shareOut(l.outputs, l.inputs*n.Batch, func(from, to int) { n.update(l, x, from, to) })
	}
}

func (n *network) back(l *layer, from, to int) {
	for b := 0; b < n.Batch; b++ {
		dx := l.dx[b*l.inputs+from : b*l.inputs+to]
		for i := range dx {
			dx[i] = 0
		}
	}
	for j := 0; j < l.outputs; j++ {
		row := l.weight[j*l.inputs+from : j*l.inputs+to]
		for b := 0; b < n.Batch; b++ {
			add(l.dx[b*l.inputs+from:b*l.inputs+to], row, l.dz[b*l.outputs+j])
		}
	}
}

// update adds the samples up before it moves a weight: steps of one sample each would round away.
func (n *network) update(l *layer, x []float32, from, to int) {
	rate := float32(n.Settings["rate"])
	step := make([]float32, l.inputs)
	for j := from; j < to; j++ {
		row, sum := l.weight[j*l.inputs:(j+1)*l.inputs], float32(0)
		for i := range step {
			step[i] = 0
		}
		for b := 0; b < n.Batch; b++ {
			g := l.dz[b*l.outputs+j]
			add(step, x[b*l.inputs:(b+1)*l.inputs], g)
			sum += g
		}
		add(row, step, -rate)
		l.bias[j] -= rate * sum
	}
}

type tensor struct {
	shape  []int
	values []float32
}

func readTensors(path string) (map[string]tensor, error) {
	bytes, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint64(bytes)
	var header map[string]struct {
		Dtype        string
		Shape        []int
		Data_offsets [2]int
	}
	if err := json.Unmarshal(bytes[8:8+length], &header); err != nil {
		return nil, err
	}
	data, tensors := bytes[8+length:], map[string]tensor{}
	for name, about := range header {
		if about.Dtype != "F32" && about.Dtype != "I32" {
			continue
		}
		part := data[about.Data_offsets[0]:about.Data_offsets[1]]
		values := make([]float32, len(part)/4)
		for i := range values {
			bits := binary.LittleEndian.Uint32(part[4*i:])
			if about.Dtype == "I32" {
				values[i] = float32(int32(bits))
			} else {
				values[i] = math.Float32frombits(bits)
			}
		}
		tensors[name] = tensor{about.Shape, values}
	}
	return tensors, nil
}

type unsupported string

func (u unsupported) Error() string { return string(u) }

// refuse says what this peer is asked for and has not.
func (n *network) refuse() error {
	training := n.Phase == "training"
	switch {
	case n.Layers == nil:
		return unsupported("prony cannot import the file, and this peer opens none itself")
	case n.Unit != "cpu" || n.Precision != "fp32":
		return unsupported("this peer computes in fp32 on the CPU, not in " + n.Precision + " on the " + n.Unit)
	case n.Backend != "" && n.Backend != "default":
		return unsupported("this peer has no backend " + n.Backend)
	case n.Loss != "mse" && n.Loss != "cross_entropy":
		return unsupported("this peer knows mse and cross_entropy, not " + n.Loss)
	case training && n.Optimiser != "sgd":
		return unsupported("this peer knows sgd, not " + n.Optimiser)
	case training && n.Settings["decay"]+n.Settings["clip"] != 0:
		return unsupported("this peer knows sgd without decay and clip")
	}
	return nil
}

func (n *network) open() error {
	if err := n.refuse(); err != nil {
		return err
	}
	weights, err := readTensors(n.Weights)
	if err != nil {
		return err
	}
	data, err := readTensors(n.Data)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(n.Threads)
	n.layers, n.place = nil, 0
	for place, about := range n.request.Layers {
		if len(about.Inputs) != 1 || about.Inputs[0] != place-1 || (about.Bias != nil && *about.Bias == 0) {
			return unsupported("this peer knows plain stacks of layers with a bias")
		}
		count := len(n.layers)
		switch {
		case about.Kind == "dense":
			n.layers = append(n.layers, n.dense(about.Name, weights))
		case (about.Kind == "sigmoid" || about.Kind == "relu") && count > 0 && n.layers[count-1].activation == "":
			n.layers[count-1].activation = about.Kind
		default:
			return unsupported("this peer has no layer " + about.Kind + " here")
		}
	}
	if n.Loss == "cross_entropy" && n.layers[len(n.layers)-1].activation != "" {
		return unsupported("this peer takes the cross-entropy of a linear layer")
	}
	n.x, n.target, n.label = data["x"].values, data["target"].values, data["label"].values
	n.batches = data["x"].shape[0] / n.Batch
	return nil
}

func (n *network) dense(name string, weights map[string]tensor) *layer {
	w := weights[name+".weight"]
	l := &layer{name: name, inputs: w.shape[0], outputs: w.shape[1]}
	l.weight = make([]float32, len(w.values))
	for i := 0; i < l.inputs; i++ {
		for j := 0; j < l.outputs; j++ {
			l.weight[j*l.inputs+i] = w.values[i*l.outputs+j]
		}
	}
	l.bias = weights[name+".bias"].values
	l.y = make([]float32, n.Batch*l.outputs)
	l.dz = make([]float32, n.Batch*l.outputs)
	l.dx = make([]float32, n.Batch*l.inputs)
	return l
}

func (n *network) step(batch int) {
	if n.Phase == "training" {
		n.train(batch)
	} else {
		n.forward(batch)
	}
}

// iterate says how many nanoseconds it took.
func (n *network) iterate(count int) int64 {
	start := time.Now()
	for i := 0; i < count; i++ {
		n.step((n.place + i) % n.batches)
	}
	elapsed := time.Since(start).Nanoseconds()
	n.place = (n.place + count) % n.batches
	return elapsed + 1
}

func (n *network) parameter(name string, i int) float32 {
	for _, l := range n.layers {
		if name == l.name+".bias" {
			return l.bias[i]
		}
		if name == l.name+".weight" {
			return l.weight[i%l.outputs*l.inputs+i/l.outputs]
		}
	}
	return float32(math.NaN())
}

func (n *network) check(asked request) (map[string]interface{}, error) {
	if err := n.open(); err != nil {
		return nil, err
	}
	values := []float32{}
	for i := 0; i < asked.Steps; i++ {
		n.step(i % n.batches)
		if n.Phase == "inference" {
			values = append(values, n.layers[len(n.layers)-1].y...)
		}
	}
	n.place = asked.Steps % n.batches
	if n.Phase == "inference" {
		if len(values) > asked.Most {
			values = values[:asked.Most]
		}
		return map[string]interface{}{"values": values}, nil
	}
	for _, sample := range asked.Samples {
		values = append(values, n.parameter(sample[0].(string), int(sample[1].(float64))))
	}
	return map[string]interface{}{"loss": n.loss, "values": values}, nil
}

func (n *network) answer(line []byte) (map[string]interface{}, error) {
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	switch asked.Do {
	case "prepare":
		n.request = asked
		return map[string]interface{}{}, n.open()
	case "run":
		const short = 20e6 // an iteration that is run once before it is timed: the caches are cold
		if asked.Warm && n.iteration > 0 && n.iteration < short {
			n.iterate(1)
		}
		elapsed := n.iterate(asked.Iterations)
		n.iteration = elapsed / int64(asked.Iterations)
		return map[string]interface{}{"elapsed_ns": elapsed}, nil
	case "check":
		return n.check(asked)
	}
	return nil, fmt.Errorf("there is no request %q", asked.Do)
}

func main() {
	var n network
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		answer, failure := n.answer(line)
		if answer == nil {
			answer = map[string]interface{}{}
		}
		answer["status"] = "ok"
		if failure != nil {
			answer["status"], answer["reason"] = "failed", strings.TrimSpace(failure.Error())
			if _, is := failure.(unsupported); is {
				answer["status"] = "unsupported"
			}
		}
		text, _ := json.Marshal(answer)
		os.Stdout.Write(append(text, '\n'))
	}
}
