"""DataSynthesizer: the description of a table of one column, which is what the synthetic rows are made from."""

import os
import tempfile

BATCH = 100


def mechanism():
    import pandas
    from DataSynthesizer.DataDescriber import DataDescriber

    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "table.csv")

    def described(values):
        pandas.DataFrame({"amount": [float(value) for value in values]}).to_csv(path, index=False)
        describer = DataDescriber()
        describer.describe_dataset_in_independent_attribute_mode(
            path, epsilon=1.0, attribute_to_is_categorical={"amount": False}, seed=int.from_bytes(os.urandom(4), "big")
        )
        column = describer.data_description["attribute_description"]["amount"]
        return [float(column["min"]), float(column["max"])]

    return described
