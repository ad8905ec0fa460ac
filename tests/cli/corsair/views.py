"""What random graphs on the card have of views: values turned, cut, turned round, broadcast and reshaped, one behind the other, and attention
whose heads share keys and values."""


def product(dims):
    total = 1
    for dim in dims:
        total *= dim
    return total


def numbers(values):
    return f"array<i64: {', '.join(map(str, values))}>"


class Views:
    """Of a graph (corsair_graphs.Graph): each takes (name, shape) of a value, or any, and adds views of it; None where it fits none."""

    MOST = 200000  # elements of a value

    def view(self, op, name, shape, out, attributes=""):
        return self.add(f"dmir.{op} {name}{attributes} : ({self.type(shape)}) -> {self.type(out)}", out)

    def transpose(self, of=None):
        name, shape = of or self.pick()
        order = list(range(len(shape)))
        self.random.shuffle(order)
        return self.turned(name, shape, order)

    def turned(self, name, shape, order):
        return self.view("transpose", name, shape, tuple(shape[i] for i in order), f" {{permutation = {numbers(order)}}}")

    def reshape(self, of=None):
        name, shape = of or self.pick()
        if len(shape) > 2 and self.random.random() < 0.6:
            return self.merged(name, shape, self.random.randrange(len(shape) - 1))
        for at in self.random.sample(range(len(shape)), len(shape)):
            if len(shape) < 4 and shape[at] % 4 == 0:
                return self.view("reshape", name, shape, shape[:at] + self.random.choice([(4, shape[at] // 4), (shape[at] // 2, 2)]) + shape[at + 1:])
        return None

    def merged(self, name, shape, at):
        return self.view("reshape", name, shape, shape[:at] + (shape[at] * shape[at + 1],) + shape[at + 2:])

    def unsqueeze(self, of=None):
        name, shape = of or self.pick()
        at = self.random.randrange(len(shape) + 1)
        return self.view("reshape", name, shape, shape[:at] + (1,) + shape[at:]) if len(shape) < 5 else None

    def expand(self, of=None):
        """Dims of one, or a new one in front."""
        name, shape = of or self.pick()
        ones = [at for at, dim in enumerate(shape) if dim == 1]
        times = self.random.choice([2, 3, 4, 8])
        if times * product(shape) > self.MOST or len(shape) + (not ones) > 5:
            return None
        at = self.random.choice(ones) if ones else -1
        out = tuple(times if i == at else dim for i, dim in enumerate(shape)) if ones else (times,) + shape
        return self.view("broadcast", name, shape, out)

    def repeated(self, of=None):
        """As exporters repeat heads: unsqueeze, expand, reshape."""
        name, shape = of or self.pick()
        at, times = self.random.randrange(len(shape)), self.random.choice([2, 3, 4])
        if times * product(shape) > self.MOST or len(shape) > 4:
            return None
        return self.repeat(name, shape, at, times)

    def repeat(self, name, shape, at, times):
        """Each element of dim `at` so often."""
        apart, wide = shape[:at + 1] + (1,) + shape[at + 1:], shape[:at + 1] + (times,) + shape[at + 1:]
        one = self.view("reshape", name, shape, apart)
        return self.merged(self.view("broadcast", one, apart, wide), wide, at)

    def slice(self, of=None):
        name, shape = of or self.pick()
        axis = self.random.randrange(len(shape))
        if shape[axis] < 4:
            return None
        start, step = self.random.randrange(shape[axis] // 2), self.random.choice([1, 1, 2, -1, -2])
        size = (shape[axis] - start + step - 1) // step
        if step < 0:  # turned round, often all of it
            start = shape[axis] - 1 - self.random.choice([0, 0, start])
            size = start // -step + 1
        starts, steps = [0] * len(shape), [1] * len(shape)
        starts[axis], steps[axis] = start, step
        return self.part(name, shape, starts, shape[:axis] + (size,) + shape[axis + 1:], steps)

    def part(self, name, shape, starts, out, steps):
        return self.view("slice", name, shape, out, f" {{starts = {numbers(starts)}, sizes = {numbers(out)}, steps = {numbers(steps)}}}")

    def chain(self):
        """Views of views, which no op between them puts into order; then something that reads them."""
        of = self.pick()
        for _ in range(self.random.randint(3, 7)):
            if self.random.choice([self.transpose, self.transpose, self.reshape, self.slice, self.slice, self.unsqueeze, self.expand, self.repeated])(of):
                of = self.values[-1]
        read = [lambda of: self.view("relu", *of, of[1]), self.softmax, self.reduce, self.concat, None]
        read += [self.matmul, self.matmul, self.attention] * (len(of[1]) in (2, 3)) + [self.conv, self.conv, self.pool] * (len(of[1]) == 4)
        if reads := self.random.choice(read):
            reads(of)

    def shared(self, heads=None, groups=None):
        """Attention of which several heads, or all, have the same keys and values; the rows of a head may lie side by side with others'."""
        heads, (rows, depth) = heads or self.random.choice([3, 4, 8, 12]), self.random.choice([(5, 16), (16, 64), (40, 24), (64, 32), (65, 64)])
        groups = groups or self.random.choice([1, 1] + [g for g in (2, 3, 4) if heads % g == 0])
        q, k, v = (self.head_input(count, rows, depth) for count in (heads, groups, groups))
        shape, own = (heads, rows, depth), (groups, rows, depth)
        if self.random.random() < 0.6:
            k, v = (self.repeat(x, own, 0, heads // groups) for x in (k, v))
            own = shape
        elif groups > 1:  # one dim more instead
            q = self.view("reshape", q, shape, (groups, heads // groups, rows, depth))
            k, v = (self.view("reshape", x, own, (groups, 1, rows, depth)) for x in (k, v))
            shape, own = (groups, heads // groups, rows, depth), (groups, 1, rows, depth)
        rank = len(shape)
        t, across = self.turned(k, own, [*range(rank - 2), rank - 1, rank - 2]), own[:-2] + (depth, rows)
        scores = shape[:-1] + (rows,)
        s = self.add(f"dmir.matmul {q}, {t} : ({self.type(shape)}, {self.type(across)}) -> {self.type(scores)}", scores)
        p = self.view("softmax", s, scores, scores, f" {{axis = {rank - 1} : i64}}")
        self.add(f"dmir.matmul {p}, {v} : ({self.type(scores)}, {self.type(own)}) -> {self.type(shape)}", shape)

    def head_input(self, heads, rows, depth):
        """[heads, rows, depth], at times as a projection leaves it: the heads of a row side by side."""
        name = f"%x{len(self.inputs)}"
        turned = self.random.random() < 0.5
        shape = (rows, heads * depth) if turned else (heads, rows, depth)
        self.inputs.append((name, shape))
        if not turned:
            return name
        apart = self.view("reshape", name, shape, (rows, heads, depth))
        return self.turned(apart, (rows, heads, depth), [1, 0, 2])
