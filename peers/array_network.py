"""Neural networks over arrays as NumPy has them: 32-bit floats, whole batches, updates in place. The
peers numpy and cupy are this code over either."""


class Layer:
    def __init__(self, np, weights, turned, weight_name, bias_name, activation):
        self.np = np
        shape, values = weights[weight_name]
        self.weight = np.array(values, dtype=np.float32).reshape(shape)  # [inputs, outputs]
        if turned:  # in memory [outputs, inputs]
            self.weight = np.asfortranarray(self.weight)
        self.bias = np.array(weights[bias_name][1], dtype=np.float32)
        self.activation = activation

    def forward(self, x):
        np, y = self.np, x @ self.weight
        y += self.bias
        if self.activation == "sigmoid":
            np.negative(y, out=y)
            np.exp(y, out=y)
            y += np.float32(1)
            np.reciprocal(y, out=y)
        elif self.activation == "relu":
            np.maximum(y, 0, out=y)
        return y

    def slopes(self, y, dy):
        if self.activation == "sigmoid":
            return dy * (y * (self.np.float32(1) - y))
        if self.activation == "relu":
            return dy * (y > 0)
        return dy

    def update(self, rate, x, dz):
        self.weight -= x.T @ (rate * dz)
        self.bias -= rate * dz.sum(axis=0)


class ArrayNetwork:
    turned = False  # the setting: weights lie as [out][in]

    def begin(self, np, work):
        self.np, self.work = np, work
        self.softmax = work.loss == "cross_entropy"
        self.inputs = self.batches(work.inputs)
        self.rate = np.float32(work.rate)
        self.step = self.train if work.training else self.infer
        if work.training and self.softmax:
            width = work.weights[work.dense_stack()[-1][1]][0][0]
            one_of = np.eye(width, dtype=np.float32)[np.array(work.labels[1], dtype=np.int32)]
            self.targets = one_of.reshape(work.batches, work.batch, width)
        elif work.training:
            self.targets = self.batches(work.targets)

    def batches(self, tensor):
        shape, values = tensor
        values = self.np.array(values, dtype=self.np.float32)
        return values.reshape(self.work.batches, self.work.batch, -1)

    def restart(self):
        stack = self.work.dense_stack()
        self.layers = [Layer(self.np, self.work.weights, self.turned, *names) for names in stack]
        self.names = {}
        for layer, (weight, bias, _) in zip(self.layers, stack):
            self.names[weight], self.names[bias] = layer.weight, layer.bias

    def forward(self, batch):
        x = self.inputs[batch]
        for layer in self.layers:
            x = layer.forward(x)
        return self.probabilities(x) if self.softmax else x

    def probabilities(self, y):
        y = self.np.exp(y - y.max(axis=1, keepdims=True))
        y /= y.sum(axis=1, keepdims=True)
        return y

    def slopes(self, y, target):
        """Sets the loss; gives its slopes for what the last layer gave."""
        np = self.np
        if self.softmax:
            y = self.probabilities(y)
            self.error = -np.log((y * target).sum(axis=1)).mean()
            return (y - target) * np.float32(1.0 / len(y))
        difference = y - target
        flat = difference.reshape(-1)
        self.error = (flat @ flat) / flat.size
        return difference * np.float32(2.0 / flat.size)

    def train(self, batch):
        values = [self.inputs[batch]]
        for layer in self.layers:
            values.append(layer.forward(values[-1]))
        dy = self.slopes(values[-1], self.targets[batch])
        for n in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[n]
            dz = layer.slopes(values[n + 1], dy)
            if n:
                dy = dz @ layer.weight.T
            layer.update(self.rate, values[n], dz)

    def infer(self, batch):
        self.y = self.forward(batch)

    def outputs(self):
        return self.y.reshape(-1).tolist()

    def loss(self):
        return float(self.error)

    def parameter(self, name, i):
        array = self.names[name]
        return float(array[divmod(i, array.shape[1])] if array.ndim == 2 else array[i])
