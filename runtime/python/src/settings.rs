//! Settings of the Python package laid over those of the environment.

use pyo3::PyResult;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stepccl::Config;

use crate::errors::to_python;

/// The environment's settings with those of `settings` over them.
pub(crate) fn config(settings: &Bound<'_, PyDict>) -> PyResult<Config> {
    let mut config = Config::from_env().map_err(|e| to_python(&e))?;
    for (key, value) in settings {
        let key: String = key.extract()?;
        match key.as_str() {
            "buffer_size" => config.buffer_bytes = Some(value.extract()?),
            "pipeline_depth" => config.pipeline_depth = Some(value.extract()?),
            "page_size" => config.page_bytes = Some(value.extract()?),
            "enable_dma" => {
                // Asked for, there is at least one; STEPCCL_DMA_CONCURRENCY says how many.
                config.channels = if value.extract()? { config.channels.max(1) } else { 0 };
            }
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "unknown setting {key:?}: must be one of buffer_size, enable_dma, page_size, pipeline_depth"
                )));
            }
        }
    }
    config.check().map_err(|e| to_python(&e))?;
    Ok(config)
}
