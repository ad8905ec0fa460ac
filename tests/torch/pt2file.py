"""Writes .pt2 archives as torch.export.save lays them out: schema 8, stored records, raw payloads."""
import io
import json
import zipfile

SCHEMA = {"u8": 1, "i8": 2, "i16": 3, "i32": 4, "i64": 5, "f16": 6, "f32": 7, "f64": 8, "bool": 12, "bf16": 13, "c64": 10, "c128": 11}


def sizes(shape):
    return [{"as_int": n} if isinstance(n, int) else {"as_expr": {"expr_str": n, "hint": {"as_int": 4}}} for n in shape]


def strides(shape):
    result, step = [], 1
    for n in reversed(shape):
        result.insert(0, step)
        step *= n if isinstance(n, int) else 4
    return [{"as_int": n} for n in result]


def meta(dtype, shape):
    return {"dtype": SCHEMA[dtype], "sizes": sizes(shape), "requires_grad": False, "device": {"type": "cpu", "index": None},
            "strides": strides(shape), "storage_offset": {"as_int": 0}, "layout": 7}


class Program:
    """A graph that grows; names are those of the caller."""

    def __init__(self):
        self.inputs, self.specs, self.nodes, self.outputs, self.output_specs, self.values = [], [], [], [], [], {}
        self.ranges, self.payloads, self.sym_ints = {}, {}, {}
        self.tree = None  # of the results, as pytrees are written

    def input(self, name, dtype, shape):
        self.inputs.append({"as_tensor": {"name": name}})
        self.specs.append({"user_input": {"arg": {"as_tensor": {"name": name}}}})
        self.values[name] = meta(dtype, shape)

    def tensor(self, name, kind, dtype, shape, data, persistent=True):
        """A parameter, buffer or tensor_constant with its bytes."""
        self.inputs.append({"as_tensor": {"name": name}})
        spec = {"arg": {"name": name}, f"{kind}_name": name}
        self.specs.append({kind: {**spec, "persistent": persistent} if kind == "buffer" else spec})
        self.values[name] = meta(dtype, shape)
        self.payloads[name] = ("constants" if kind == "tensor_constant" or not persistent else "weights", meta(dtype, shape), data)

    def node(self, target, arguments, outputs, **more):
        self.nodes.append({"target": target, "inputs": [{"name": n, "arg": a, "kind": 1} for n, a in arguments.items()], "outputs": outputs,
                           "metadata": {}, "is_hop_single_tensor_return": None, **more})

    def output(self, name, kind="user_output", **more):
        self.outputs.append({"as_tensor": {"name": name}})
        arg = {"as_tensor": {"name": name}} if kind == "user_output" else {"name": name}
        self.output_specs.append({kind: {"arg": arg, **more}})

    def json(self):
        graph = {"inputs": self.inputs, "outputs": self.outputs, "nodes": self.nodes, "tensor_values": self.values,
                 "sym_int_values": self.sym_ints, "sym_bool_values": {}, "is_single_tensor_return": False, "custom_obj_values": {}}
        return {"graph_module": {"graph": graph, "signature": {"input_specs": self.specs, "output_specs": self.output_specs},
                                 "module_call_graph": self.tree and [{"fqn": "", "signature": {"out_spec": json.dumps([1, self.tree])}}] or [],
                                 "metadata": {}},
                "opset_version": {"aten": 10}, "range_constraints": self.ranges, "schema_version": {"major": 8, "minor": 14},
                "verifiers": ["ATEN"], "torch_version": "2.9.0"}

    def records(self):
        tables = {"weights": {}, "constants": {}}
        records = {"models/model.json": json.dumps(self.json()).encode()}
        for i, (name, (folder, about, data)) in enumerate(self.payloads.items()):
            path = ("weight_" if folder == "weights" else "tensor_") + str(i)
            tables[folder][name] = {"path_name": path, "is_param": folder == "weights", "use_pickle": False, "tensor_meta": about}
            records[f"data/{folder}/{path}"] = data
        for folder, table in tables.items():
            records[f"data/{folder}/model_{folder}_config.json"] = json.dumps({"config": table}).encode()
        return {**records, "archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little"}

    def write(self, path):
        write_archive(path, self.records())


def archive(records, root="m"):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as zip_file:
        for name, data in records.items():
            zip_file.writestr(zipfile.ZipInfo(f"{root}/{name}" if root else name), data)
    return stream.getvalue()


def write_archive(path, records, root="m"):
    with open(path, "wb") as file:
        file.write(archive(records, root))
